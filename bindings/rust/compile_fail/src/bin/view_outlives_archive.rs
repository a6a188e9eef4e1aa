// E0505
use shardfeed::Archive;

fn main() -> shardfeed::Result<()> {
    let archive = Archive::builder().open_bytes(vec![])?;
    let view = archive.view(0)?;
    drop(archive);
    println!("{view:?}");
    Ok(())
}
