// E0277
use std::rc::Rc;

use shardfeed::Stream;

fn main() -> shardfeed::Result<()> {
    let end = Rc::new(0);
    let builder = Stream::builder().pack(8).tokenizer(move |_, tokens: &mut Vec<i32>| {
        tokens.push(*end);
        Ok::<_, std::convert::Infallible>(())
    });
    builder.open(["a.tar"])?;
    Ok(())
}
