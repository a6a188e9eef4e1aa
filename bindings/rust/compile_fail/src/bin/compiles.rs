// Nothing: what the others do is right without their last step.
use shardfeed::{Archive, Stream};

fn main() -> shardfeed::Result<()> {
    let mut stream = Stream::open(["a.tar"])?;
    let sample = stream.next().unwrap()?;
    let jpg = sample.get("jpg");
    println!("{jpg:?}");
    drop(sample);
    let block = stream.next_block(0)?.unwrap();
    let first = block.get(0).unwrap();
    println!("{:?}", first.key());
    drop(block);
    let mut batch = stream.next_batch()?.unwrap();
    let column = batch.column("cls").unwrap();
    println!("{:?}", column.values::<i64>());
    batch.values_mut::<i64>("cls").unwrap()[0] = 1;
    let archive = Archive::builder().open_bytes(vec![])?;
    println!("{:?}", archive.view(0)?);
    std::thread::scope(|scope| {
        let control = stream.control();
        scope.spawn(move || control.cancel());
    });
    Ok(())
}
