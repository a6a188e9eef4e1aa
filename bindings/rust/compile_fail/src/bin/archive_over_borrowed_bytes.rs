// E0597
use shardfeed::Archive;

fn main() -> shardfeed::Result<()> {
    let bytes = vec![0; 100];
    Archive::builder().open_bytes(&bytes[..])?;
    Ok(())
}
