//! Series whose results are values.

use std::path::PathBuf;
use std::sync::Arc;

use horus_core::comm::threads::ThreadComm;
use horus_core::cpu::device::CpuDevice;
use horus_core::error::{Error, Result};
use horus_core::image::{Image, Value};
use horus_core::io::{AnyImage, Picture};
use horus_core::session::Session;

fn session() -> Session {
    Session::on(Box::new(CpuDevice::new(None).unwrap())).build().unwrap()
}

/// Pictures of one row, `0 1 2 ...` plus their number.
fn picture(number: u8) -> Picture {
    let row: Vec<u8> = (0..10).map(|x| x + number).collect();
    let bytes = [b"P5 10 1 255 ", &row[..]].concat();
    Picture::read(&bytes, &Default::default()).unwrap()
}

fn values(picture: &AnyImage) -> (Value<f32>, Vec<Value<f64>>) {
    let floats = picture.convert::<f32>();
    (floats.max_value(), vec![floats.sum(), floats.mean()])
}

#[test]
fn values_come_in_order_with_an_error_for_each_picture() {
    let session = session();
    let inputs = (0..9).map(|i| if i == 4 { Err(Error::Config("broken".into())) } else { Ok(picture(i)) });
    let operation = |picture: &AnyImage| -> Result<(Value<f32>, Vec<Value<f64>>)> {
        let values = values(picture);
        // The eighth begins with 7.
        if picture.convert::<f32>().pixel((0, 0))? == 7.0 { Err(Error::Config("refused".into())) } else { Ok(values) }
    };
    let items: Vec<_> = session.series(inputs, operation).values().collect();
    assert_eq!(items.iter().map(|i| i.number).collect::<Vec<_>>(), (0..9).collect::<Vec<_>>());
    for (i, item) in items.into_iter().enumerate() {
        match i {
            4 => assert_eq!(item.result.unwrap_err().to_string(), "broken"),
            7 => assert_eq!(item.result.unwrap_err().to_string(), "refused"),
            _ => {
                let n = i as f64;
                assert_eq!(item.result.unwrap(), (9.0 + i as f32, vec![45.0 + 10.0 * n, 4.5 + n]));
            }
        }
    }
}

#[test]
fn values_of_pictures_of_equal_kind_share_a_plan_and_are_computed_together() {
    let session = session();
    let all: Result<Vec<_>> = session.series((0..5).map(picture), values).values().map(|i| i.result).collect();
    assert_eq!(all.unwrap().len(), 5);
    assert_eq!((session.stats().evaluations, session.stats().planned), (5, 1));
}

#[test]
fn values_that_cannot_be_recorded_and_those_of_others_are_errors_of_their_pictures() {
    let (session, other) = (session(), session());
    let empty = |picture: &AnyImage| picture.convert::<f32>().crop(0, 0, 5, 5).mean();
    let items: Vec<_> = session.series([picture(0)], empty).values().collect();
    assert!(items[0].result.as_ref().unwrap_err().to_string().contains("crop"), "{:?}", items[0]);
    let foreign = Image::<f32>::zeros(&other, (2, 2));
    let items: Vec<_> = session.series([picture(0)], |_: &AnyImage| foreign.sum()).values().collect();
    assert!(matches!(items[0].result, Err(Error::ForeignImage { .. })), "{:?}", items[0]);
}

#[test]
fn every_rank_gets_the_values_of_what_rank_0_reads() {
    let dir = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> = (0..6u8)
        .map(|i| {
            let path = dir.path().join(format!("{i}.pgm"));
            let rows: Vec<u8> = (0..70 * 30).map(|p| (p % 200) as u8 + i).collect();
            std::fs::write(&path, [b"P5 30 70 255 ", &rows[..]].concat()).unwrap();
            path
        })
        .collect();
    let series =
        |session: &Session| -> Vec<_> { session.series(&paths, values).values().map(|i| i.result.unwrap()).collect() };
    let one = series(&session());
    for ranks in 2..=4 {
        let told = ThreadComm::run(ranks, |comm| {
            let device = Box::new(CpuDevice::new(Some(1)).unwrap());
            series(&Session::on(device).communicator(Arc::new(comm)).build().unwrap())
        });
        assert!(told.iter().all(|told| *told == one), "{ranks} ranks");
    }
}

#[test]
fn an_operation_recorded_once_yields_the_values_of_each_picture() {
    let session = session();
    let calls = std::cell::Cell::new(0);
    let counted = |picture: &AnyImage| {
        calls.set(calls.get() + 1);
        values(picture)
    };
    let series = session.series((0..5).map(picture), counted).recorded_once();
    for (i, item) in series.values().enumerate() {
        let n = i as f64;
        assert_eq!(item.result.unwrap(), (9.0 + i as f32, vec![45.0 + 10.0 * n, 4.5 + n]));
    }
    assert_eq!(calls.get(), 1);
}
