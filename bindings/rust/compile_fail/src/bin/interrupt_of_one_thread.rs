// E0277
use std::cell::Cell;
use std::rc::Rc;

use shardfeed::Archive;

fn main() -> shardfeed::Result<()> {
    let stop = Rc::new(Cell::new(false));
    let builder = Archive::builder().interrupt(move || stop.get());
    builder.open("a.tar")?;
    Ok(())
}
