// E0505
use shardfeed::Stream;

fn main() -> shardfeed::Result<()> {
    let mut stream = Stream::open(["a.tar"])?;
    let block = stream.next_block(0)?.unwrap();
    let first = block.get(0).unwrap();
    drop(block);
    println!("{:?}", first.key());
    Ok(())
}
