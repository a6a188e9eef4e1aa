// E0505
use shardfeed::Stream;

fn main() -> shardfeed::Result<()> {
    let mut stream = Stream::open(["a.tar"])?;
    let sample = stream.next().unwrap()?;
    let jpg = sample.get("jpg");
    drop(sample);
    println!("{jpg:?}");
    Ok(())
}
