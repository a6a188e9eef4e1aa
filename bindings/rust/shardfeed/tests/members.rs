//! Members in sequence, as `std::io::Read` takes them.

mod shards;

use std::fs;
use std::io::{self, Read};

use shardfeed::{Error, ErrorKind, MemberKind, Members};
use shards::{folder, members, tar};

const IMAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/images.zip");

/// Names and bytes of all members.
fn all(mut members: Members) -> Vec<(String, Vec<u8>)> {
    let mut seen = Vec::new();
    while let Some(mut member) = members.next_member().unwrap() {
        let name = member.name().to_string();
        assert_eq!(member.kind(), MemberKind::File);
        let mut bytes = Vec::new();
        member.read_to_end(&mut bytes).unwrap();
        assert_eq!(member.size(), bytes.len() as u64);
        seen.push((name, bytes));
    }
    assert!(members.next_member().unwrap().is_none());
    seen
}

#[test]
fn all_members_come_in_order() {
    let mut written = members(0, 5, 10_000);
    written.extend(members(3, 1, 1));
    let path = tar(folder("members").join("a.tar"), &written);
    assert_eq!(all(Members::open(&path).unwrap()), written);
    let piped = format!("pipe:gzip -c {}", path.display());
    assert_eq!(all(Members::open(piped).unwrap()), written);
    assert_eq!(all(Members::open(IMAGES).unwrap()).len(), 3);
    assert_eq!(all(Members::open(format!("pipe:cat '{IMAGES}'")).unwrap()).len(), 3);
}

#[test]
fn headers_and_parts() {
    let path = tar(folder("members-parts").join("a.tar"), &members(0, 2, 100));
    let mut members = Members::open(&path).unwrap();
    let mut member = members.next_member().unwrap().unwrap();
    assert_eq!((member.mode(), member.uid(), member.gid()), (Some(0o644), Some(0), Some(0)));
    assert_eq!((member.mtime_ns(), member.offset(), member.crc32()), (Some(0), 0, None));
    assert_eq!((member.stored_size(), member.method()), (100, 0));
    assert!(member.link().is_none() && member.user().is_none() && member.group().is_none());
    let mut part = [0; 10];
    assert_eq!(member.read_some(&mut []).unwrap(), 0);
    assert_eq!(member.read_some(&mut part).unwrap(), 10);
    assert!(format!("{member:?}").contains("00000.bin"));
    let second = members.next_member().unwrap().unwrap();
    assert_eq!(second.name(), "00000.cls");
    assert!(!format!("{members:?}").is_empty());
}

#[test]
fn damage_is_an_error_that_repeats() {
    let path = tar(folder("members-damage").join("a.tar"), &members(0, 2, 5000));
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..3000]).unwrap();
    let mut members = Members::open(&path).unwrap();
    let mut member = members.next_member().unwrap().unwrap();
    let error = io::copy(&mut member, &mut io::sink()).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    let inner = error.get_ref().unwrap().downcast_ref::<Error>().unwrap();
    assert_eq!((inner.kind(), inner.offset()), (ErrorKind::Truncated, Some(0)));
    for _ in 0..2 {
        assert_eq!(members.next_member().unwrap_err().kind(), ErrorKind::Truncated);
    }
    assert_eq!(Members::open("/no/such.tar").unwrap_err().kind(), ErrorKind::Io);
}

#[test]
fn a_timeout_and_an_interrupt_lose_nothing() {
    let written = members(0, 1, 1000);
    let folder = folder("members-timeout");
    let path = tar(folder.join("a.tar"), &written);
    // The command waits for the test, regardless of the speed of the machine.
    let go = folder.join("go");
    let slow =
        format!("pipe:until [ -e {} ]; do sleep 0.01; done; cat {}", go.display(), path.display());
    let mut asked = 0;
    let builder =
        Members::builder().timeout(std::time::Duration::from_millis(120)).interrupt(move || {
            asked += 1;
            asked == 1
        });
    let mut members = builder.open_members(slow).unwrap();
    assert_eq!(members.next_member().unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!(members.next_member().unwrap_err().kind(), ErrorKind::Timeout);
    fs::write(go, "").unwrap();
    loop {
        match members.next_member() {
            Err(error) => assert_eq!(error.kind(), ErrorKind::Timeout, "{error}"),
            Ok(member) => {
                let mut bytes = Vec::new();
                member.unwrap().read_to_end(&mut bytes).unwrap();
                assert_eq!(bytes, written[0].1);
                break;
            }
        }
    }
}
