// E0277
use std::rc::Rc;

use shardfeed::{LogLevel, Stream};

fn main() -> shardfeed::Result<()> {
    let count = Rc::new(0);
    let builder = Stream::builder().log(LogLevel::Info, move |_, text| println!("{count} {text}"));
    builder.open(["a.tar"])?;
    Ok(())
}
