// E0499
use shardfeed::Writer;

fn main() -> shardfeed::Result<()> {
    let mut writer = Writer::open("a.tar")?;
    let sample = writer.begin("a")?;
    writer.next_shard()?;
    sample.end()
}
