use super::*;

fn declared(name: &str) -> &'static dyn Declared {
    *VARIABLES.iter().find(|v| v.name() == name).unwrap()
}

#[test]
fn values_are_taken_or_refused_with_what_is_expected() {
    for (name, good, bad, says) in [
        ("HORUS_DEVICE", "cuda:1", "zz", "expected auto, cpu, cuda or cuda:N"),
        ("HORUS_DEVICE", "auto", "cuda:x", "expected auto, cpu, cuda or cuda:N"),
        ("HORUS_THREADS", "4", "four", "expected a number"),
        ("HORUS_MODE", "lazy", "eager", "expected naive, lazy or fused"),
        ("HORUS_ISA", "avx2", "sse9", "expected avx2 or avx512"),
        ("HORUS_GPU_MEMORY", "3G", "zz", "expected bytes, or a number with K, M or G"),
        ("HORUS_HOST_MEMORY", "4096", "-1", "expected bytes, or a number with K, M or G"),
        ("HORUS_WEIGHTS", "node:2(1,3),1", "1,x", "\"x\" is not a number"),
        ("HORUS_WEIGHTS", "measure", "0", "all weights are zero"),
        ("HORUS_FABRIC", "host", "overlap", "expected auto, nccl or host"),
        ("HORUS_RANKS", "2", "0", "expected auto, all, or a number from 1"),
        ("HORUS_OVERLAP", "always", "nccl", "expected auto or always"),
        ("HORUS_STEPS", "8", "0", "expected auto, or a number from 1 to 64"),
        ("HORUS_STENCIL", "tile", "tiles", "expected auto, stored or tile"),
        (
            "HORUS_TRANSFER",
            "streams:4",
            "streams:65",
            "expected auto, explicit, streams, implicit, hybrid, streams:N or hybrid:N (N bands, 1 to 64)",
        ),
    ] {
        declared(name).check(Some(good.into())).unwrap();
        let message = declared(name).check(Some(bad.into())).unwrap_err().to_string();
        assert!(message.starts_with(&format!("{name}={bad}: ")) && message.contains(says), "{message}");
    }
    for v in VARIABLES {
        v.check(None).unwrap();
        v.check(Some("".into())).unwrap();
    }
}

#[test]
#[cfg(unix)]
fn what_is_not_unicode_is_refused_by_all() {
    use std::os::unix::ffi::OsStringExt as _;
    for v in VARIABLES {
        let message = v.check(Some(OsString::from_vec(vec![b'a', 0xff]))).unwrap_err().to_string();
        assert!(message.starts_with(v.name()) && message.ends_with("not valid Unicode"), "{message}");
    }
}

#[test]
fn values_are_what_their_text_means() {
    assert_eq!("".parse(), Ok(DeviceChoice::Auto));
    assert_eq!("cpu".parse(), Ok(DeviceChoice::Cpu));
    assert_eq!("cuda".parse(), Ok(DeviceChoice::Cuda(None)));
    assert_eq!("cuda:3".parse(), Ok(DeviceChoice::Cuda(Some(3))));
    assert_eq!("fused".parse(), Ok(Mode::default()));
    assert_eq!(FABRIC.values.parse("nccl"), Ok(FabricChoice::Nccl));
    assert_eq!(FABRIC.values.parse("auto"), Ok(FabricChoice::default()));
    assert_eq!(OVERLAP.values.parse("auto"), Ok(Overlap::default()));
    assert_eq!(STEPS.values.parse("auto"), Ok(StepsPerLaunch::default()));
    assert_eq!(STEPS.values.parse("3"), Ok(StepsPerLaunch::Most(3)));
    assert_eq!(ISA.parse(Some("avx2".into())).unwrap(), Some(InstructionSet::Avx2));
    assert_eq!(THREADS.parse(Some("".into())).unwrap(), None, "an empty value counts as none");
}

#[test]
fn bytes_have_units() {
    for (text, bytes) in [
        ("4096", Some(4096)),
        ("3k", Some(3 << 10)),
        (" 5 M ", Some(5 << 20)),
        ("2G", Some(2 << 30)),
        ("", None),
        ("K", None),
        ("-1", None),
        ("1.5G", None),
        ("99999999999G", None),
    ] {
        assert_eq!(parse_bytes(text), bytes, "{text}");
    }
}

#[test]
fn weights_are_written_as_they_are_read() {
    for text in ["1,2.5,0", "node:2,1", "node:2(1,3),1", "measure"] {
        assert_eq!(text.parse::<Weights>().unwrap().to_string(), text);
    }
}

#[test]
fn names_and_words_are_told_apart() {
    let mut names: Vec<&str> = VARIABLES.iter().map(|v| v.name()).collect();
    assert!(names.iter().all(|n| n.starts_with("HORUS_")));
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), VARIABLES.len());
}

#[test]
fn a_row_names_every_word_with_its_meaning() {
    assert_eq!(
        MODE.row(),
        "| `HORUS_MODE` | how much is optimised: `naive` (all transfers around each operation), `lazy` (only needed transfers), \
         `fused` (default) |"
    );
    assert_eq!(table().lines().count(), VARIABLES.len());
}
