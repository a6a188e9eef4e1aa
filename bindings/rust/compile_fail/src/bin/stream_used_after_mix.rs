// E0382
use shardfeed::Stream;

fn main() -> shardfeed::Result<()> {
    let part = Stream::open(["a.tar"])?;
    let mix = Stream::mix().open([(part, 1.0)])?;
    println!("{mix:?} {part:?}");
    Ok(())
}
