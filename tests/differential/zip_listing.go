// Prints what Go's archive/zip reads of ZIP files, for zipfile_oracle.py: one line for each entry
// of each file, as JSON.
//
//	zip_listing FILE...
package main

import (
	"archive/zip"
	"compress/bzip2"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"
	"log"
	"os"
)

type entry struct {
	File  string `json:"file"`
	Name  string `json:"name"` // in hexadecimal: it may be any bytes
	Size  int64  `json:"size"`
	CRC   uint32 `json:"crc"`   // of the contents
	Known bool   `json:"known"` // whether Go has the method; else there are no contents
}

func read(file *zip.File) (entry, error) {
	found := entry{Name: hex.EncodeToString([]byte(file.Name))}
	contents, err := file.Open()
	if errors.Is(err, zip.ErrAlgorithm) {
		return found, nil
	}
	if err != nil {
		return found, err
	}
	defer contents.Close()
	sum := crc32.NewIEEE()
	found.Size, err = io.Copy(sum, contents)
	found.CRC, found.Known = sum.Sum32(), true
	return found, err
}

func list(path string, out *json.Encoder) error {
	archive, err := zip.OpenReader(path)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // nothing is written anywhere
		return err
	}
	defer archive.Close()
	archive.RegisterDecompressor(12, func(packed io.Reader) io.ReadCloser {
		return io.NopCloser(bzip2.NewReader(packed))
	})
	for _, file := range archive.File {
		found, err := read(file)
		if err != nil {
			return err
		}
		found.File = path
		if err := out.Encode(found); err != nil {
			return err
		}
	}
	return nil
}

func main() {
	log.SetFlags(0)
	out := json.NewEncoder(os.Stdout)
	for _, path := range os.Args[1:] {
		if err := list(path, out); err != nil {
			log.Fatalf("%s: %v", path, err)
		}
	}
}
