// E0499
use shardfeed::Stream;

fn main() -> shardfeed::Result<()> {
    let mut stream = Stream::open(["a.tar"])?;
    for batch in stream.batches() {
        batch?;
        stream.save()?;
    }
    Ok(())
}
