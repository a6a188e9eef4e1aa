//! Archives: members by name and position, and what is wrong with them.

mod shards;

use std::fs;
use std::thread;

use shardfeed::{Archive, ErrorKind, MemberKind};
use shards::{folder, members, tar};

const IMAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/images.zip");

#[test]
fn members_by_name_and_position() {
    let archive = Archive::open(IMAGES).unwrap();
    assert_eq!((archive.len(), archive.is_empty()), (3, false));
    let names: Vec<_> = archive.members().map(|member| member.name().to_string()).collect();
    assert_eq!(names, ["img_000.png", "img_001.png", "img_002.png"]);
    let second = archive.member(1).unwrap();
    assert_eq!(archive.find("img_001.png").unwrap(), second.position());
    assert_eq!((second.kind(), second.method()), (MemberKind::File, 0));
    assert!(second.crc32().is_some() && second.offset() > 0);
    let bytes = second.read().unwrap();
    assert_eq!(bytes.len() as u64, second.size());
    assert_eq!(second.size(), second.stored_size());
    assert!(bytes.starts_with(b"\x89PNG"));
    let many = archive.read_many(&[2, 1, 1]).unwrap();
    assert_eq!((many.len(), &many[1], &many[2]), (3, &bytes, &bytes));
    let mut room = b"something".to_vec();
    assert_eq!(archive.read_many_into(&[2, 1, 1], &mut room).unwrap(), many);
    assert!(archive.read_many_into(&[], &mut room).unwrap().is_empty());
    let mut buffer = [0; 1000];
    assert_eq!(archive.read_into(1, &mut buffer).unwrap(), bytes);
    assert!(archive.view(1).unwrap().is_none());
}

#[test]
fn what_there_is_not() {
    let archive = Archive::open(IMAGES).unwrap();
    assert_eq!(archive.find("img_003.png").unwrap_err().kind(), ErrorKind::NotFound);
    assert!(archive.member(3).is_none());
    for position in [3, usize::MAX] {
        assert_eq!(archive.read(position).unwrap_err().kind(), ErrorKind::Usage);
        assert_eq!(archive.read_many(&[0, position]).unwrap_err().kind(), ErrorKind::Usage);
        let mut room = Vec::new();
        let many = archive.read_many_into(&[0, position], &mut room);
        assert_eq!(many.unwrap_err().kind(), ErrorKind::Usage);
        assert_eq!(archive.view(position).unwrap_err().kind(), ErrorKind::Usage);
    }
    let small = archive.read_into(0, &mut [0; 3]).unwrap_err();
    assert_eq!(small.kind(), ErrorKind::Usage);
    assert_eq!(Archive::open("/no/such.zip").unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(Archive::open("a\0.zip").unwrap_err().kind(), ErrorKind::Usage);
    let other = Archive::builder().set("shuffle", "3").open(IMAGES).unwrap_err();
    assert!(other.message().contains("not for archive"), "{other}");
}

#[test]
fn an_archive_in_memory() {
    let bytes = fs::read(IMAGES).unwrap();
    let archive = Archive::builder().open_bytes(bytes.clone()).unwrap();
    let moved = Box::new(archive);
    let view = moved.view(0).unwrap().expect("it is in memory");
    assert_eq!(view, moved.read(0).unwrap());
    let array = <[u8; 100]>::try_from(&bytes[..100]).unwrap();
    assert_eq!(Archive::builder().open_bytes(array).unwrap_err().kind(), ErrorKind::Truncated);
}

#[test]
fn a_damaged_member_is_an_error_and_the_others_are_not() {
    let mut bytes = fs::read(IMAGES).unwrap();
    let archive = Archive::open(IMAGES).unwrap();
    let place = archive.member(2).unwrap().offset() as usize + 30 + 11 + 20;
    bytes[place] ^= 1;
    let damaged = Archive::builder().open_bytes(bytes).unwrap();
    let error = damaged.read(2).unwrap_err();
    assert_eq!((error.kind(), error.member()), (ErrorKind::Integrity, Some("img_002.png")));
    assert_eq!(damaged.read_many(&[0, 2, 1]).unwrap_err(), error);
    assert_eq!(damaged.read(0).unwrap(), archive.read(0).unwrap());
}

#[test]
fn a_tar_has_no_crc() {
    let path = tar(folder("tar").join("a.tar"), &members(0, 2, 4));
    let archive = Archive::open(path).unwrap();
    let member = archive.member(archive.find(b"00001.bin").unwrap()).unwrap();
    assert_eq!((member.crc32(), member.read().unwrap()), (None, b"1111".to_vec()));
}

#[test]
fn many_threads_read_one_archive() {
    let path = tar(folder("threads").join("a.tar"), &members(0, 500, 20));
    let archive = Archive::open(path).unwrap();
    thread::scope(|scope| {
        for first in 0..4 {
            let archive = &archive;
            scope.spawn(move || {
                for n in (first..500).step_by(4) {
                    let bytes = archive.read(archive.find(format!("{n:05}.bin")).unwrap()).unwrap();
                    assert_eq!(bytes, n.to_string().repeat(20).into_bytes());
                }
            });
        }
    });
}
