// Prints what Go's archive/tar and archive/zip read of shards, for test_writer_readers.py: one line
// for each member, its name in hexadecimal, its size and the CRC-32 of its contents.
//
//	archive_listing FILE...
package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"fmt"
	"hash/crc32"
	"io"
	"log"
	"os"
	"strings"
)

func show(name string, contents io.Reader) {
	sum := crc32.NewIEEE()
	size, err := io.Copy(sum, contents)
	if err != nil {
		log.Fatalf("%s: %v", name, err)
	}
	fmt.Printf("%x %d %d\n", name, size, sum.Sum32())
}

func listTar(file io.Reader) {
	reader := tar.NewReader(file)
	for {
		header, err := reader.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			log.Fatal(err)
		}
		show(header.Name, reader)
	}
}

func listZip(path string) {
	archive, err := zip.OpenReader(path)
	if err != nil {
		log.Fatal(err)
	}
	defer archive.Close()
	for _, entry := range archive.File {
		contents, err := entry.Open()
		if err != nil {
			log.Fatal(err)
		}
		show(entry.Name, contents)
		contents.Close()
	}
}

func main() {
	for _, path := range os.Args[1:] {
		if strings.HasSuffix(path, ".zip") {
			listZip(path)
			continue
		}
		file, err := os.Open(path)
		if err != nil {
			log.Fatal(err)
		}
		defer file.Close()
		var reader io.Reader = file
		if strings.HasSuffix(path, ".gz") {
			if reader, err = gzip.NewReader(file); err != nil {
				log.Fatal(err)
			}
		}
		listTar(reader)
	}
}
