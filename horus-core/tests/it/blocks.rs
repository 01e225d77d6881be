//! Loops in blocks: the bits of the whole on every number of ranks, with land left out; the pixels
//! that ranks exchange for them.

use std::ops::{ControlFlow, Neg};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use horus_core::comm::threads::ThreadComm;
use horus_core::cpu::device::CpuDevice;
use horus_core::error::Result;
use horus_core::image::{Ending, Image, Until};
use horus_core::ops::neighbourhood::Filter;
use horus_core::plan::movement::Load;
use horus_core::session::{BlockMap, Session, SessionBuilder};
use horus_core::shape::{Axis, Border, Shape};
use horus_testing::cases::covering;
use horus_testing::simulated::SimulatedDevice;

/// Rows and columns; odd, and no multiple of blocks.
const PLANE: (usize, usize) = (23, 31);

fn builder(separate: bool) -> SessionBuilder {
    let cpu = CpuDevice::new(Some(1)).expect("a CPU");
    if separate { Session::on(Box::new(SimulatedDevice::new(cpu, 1 << 22))) } else { Session::on(Box::new(cpu)) }
}

fn cross() -> Filter {
    Filter::dense(3, 3, vec![0.0, 0.25, 0.0, 0.25, 0.0, 0.25, 0.0, 0.25, 0.0])
}

/// Seas around islands, and a lake.
fn is_sea(y: usize, x: usize) -> bool {
    let island = (7..15).contains(&y) && (8..20).contains(&x);
    let lake = (10..12).contains(&y) && (12..15).contains(&x);
    (!island || lake) && !(x > 27 && y < 12)
}

/// The ranks of blocks with sea, by a rule of their number; none of land blocks.
fn dealt(block: (usize, usize), rank: impl Fn(usize) -> usize) -> Vec<Option<usize>> {
    let (down, across) = (PLANE.0.div_ceil(block.0), PLANE.1.div_ceil(block.1));
    let mut next = 0..;
    let ranks = (0..down * across).map(|i| {
        let (top, left) = (i / across * block.0, i % across * block.1);
        let mut rows = top..(top + block.0).min(PLANE.0);
        let sea = rows.any(|y| (left..(left + block.1).min(PLANE.1)).any(|x| is_sea(y, x)));
        sea.then(|| next.next().map_or(0, &rank))
    });
    ranks.collect()
}

/// Blocks of these ranks.
fn map(block: (usize, usize), rank: impl Fn(usize) -> usize) -> BlockMap {
    BlockMap::new(PLANE, block, dealt(block, rank)).expect("a map")
}

type BlockState = (Image<f32>, Image<i32>, Image<f64>);

/// A state of two fields and a number.
fn begin(s: &Session) -> BlockState {
    let at = |y: usize, x: usize| if is_sea(y, x) { ((y * 31 + x * 17) % 101) as f32 * 0.125 } else { 0.0 };
    let u = Image::from_fn(s, PLANE.0, PLANE.1, at);
    let v = Image::from_volume_fn(s, 3, PLANE.0, PLANE.1, |z, y, x| f64::from(at(y, x)) * (1 + z) as f64);
    (u, Image::zeros(s, (1, 1)), v)
}

fn sea(s: &Session) -> Image<bool> {
    Image::from_fn(s, PLANE.0, PLANE.1, |y, x| u8::from(is_sea(y, x))).gt(0)
}

/// The fields that a step computes, and a step with its name.
type StepFields = (Image<f32>, Image<f64>);
type NamedStep = (&'static str, Box<dyn Fn(&BlockState) -> BlockState>);

/// Steps of many kinds, all of which leave land as it is.
fn steps(s: &Session, border: Border) -> Vec<NamedStep> {
    let (sea, column) = (sea(s), Image::from_fn(s, PLANE.0, 1, |y, _| 1.0 / (1 + y) as f32));
    let places = Image::<f32>::index(s, Shape::new(PLANE.0, PLANE.1, 1), Axis::Columns) * 0.01;
    let made = move |f: fn(&BlockState, Border) -> StepFields| {
        let (sea, column, places) = (sea.clone(), column.clone(), places.clone());
        Box::new(move |state: &BlockState| {
            let (u, v) = f(state, border);
            (sea.select(u + &column * &places, 0.0), &state.1 + 1, sea.select(v, 0.0))
        }) as Box<dyn Fn(&BlockState) -> BlockState>
    };
    vec![
        ("cross", made(|(u, _, v), b| (u.with_border(b).correlate(&cross()), v.with_border(b).correlate(&cross())))),
        ("wide", made(|(u, _, v), b| (u.with_border(b).gauss(1.5) + v.slice(1).convert::<f32>() * 0.1, v * 0.5))),
        (
            "depth",
            made(|(u, n, v), b| {
                let mean = v.over(Axis::Depth).sum() * 0.25;
                (u.with_border(b).median(3) * 0.5, v.with_border(b).shift(0, 1, -2) * 0.5 + mean * n.convert::<f64>())
            }),
        ),
        ("exchanged", made(|(u, _, v), _| (v.slice(0).convert(), v * 0.5 + u.convert::<f64>()))),
    ]
}

fn bits((u, n, v): &BlockState) -> Result<(Vec<u32>, Vec<i32>, Vec<u64>)> {
    let u = u.to_vec()?.iter().map(|v| v.to_bits()).collect();
    Ok((u, n.to_vec()?, v.to_vec()?.iter().map(|v| v.to_bits()).collect()))
}

/// A session, and the number of times that it has told of blocks.
fn explained(separate: bool, comm: ThreadComm) -> (Session, Arc<AtomicUsize>) {
    let told = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&told);
    let sink = move |text: &str| {
        count.fetch_add(usize::from(text.starts_with("blocks:")), Ordering::Relaxed);
    };
    (builder(separate).communicator(Arc::new(comm)).explain(sink).build().unwrap(), told)
}

#[test]
fn results_are_the_bits_of_the_whole() {
    let borders = Border::all(0.5);
    for [kind, border, step, place] in covering([4, borders.len(), 4, 4]) {
        let ((ranks, separate), border) = ([(1, false), (2, false), (3, true), (5, false)][kind], borders[border]);
        ThreadComm::run(ranks, |comm| {
            let (s, told) = explained(separate, comm);
            let map = match place {
                0 => map((8, 8), |i| i % ranks), // dealt in turn
                1 => map((5, 7), |i| (i / 6).min(ranks - 1)).exchanging_every(2).unwrap(), // runs, and a deeper halo
                2 => map((2, 3), |i| i / 9 % ranks), // thinner than the halo
                _ => map((6, 31), |i| (i % ranks).min(ranks.saturating_sub(2))), // strips; the last rank without sea
            };
            let (name, step) = &steps(&s, border)[step];
            let want = bits(&s.iterate(begin(&s), 5, step).unwrap().state).unwrap();
            s.place(map.clone()).unwrap();
            let before = told.load(Ordering::Relaxed);
            let done = s.iterate(begin(&s), 5, step).unwrap();
            assert_eq!((done.steps, done.ending), (5, Ending::Steps));
            assert!(told.load(Ordering::Relaxed) > before, "in strips: {name}, {border}, {map}");
            let got = bits(&done.state).unwrap();
            assert!(got == want, "{name}, {border}, {map}, {ranks} ranks");
        });
    }
}

/// Rows of the plane are a ring, and so are those of a column beside it.
#[test]
fn a_column_of_the_state_is_computed_whole() {
    for ranks in [1, 3] {
        ThreadComm::run(ranks, |comm| {
            let s = builder(false).communicator(Arc::new(comm)).build().unwrap();
            let u = Image::from_fn(&s, PLANE.0, PLANE.1, |y, x| (y * 31 + x) as f32);
            let column = Image::from_fn(&s, PLANE.0, 1, |y, _| y as f32);
            let run = || {
                let step =
                    |(u, c): &(Image<f32>, Image<f32>)| (u.with_border(Border::Wrap).correlate(&cross()) + c, c * 0.5);
                let (u, column) = s.iterate((u.clone(), column.clone()), 3, step).unwrap().state;
                (u.to_vec().unwrap(), column.to_vec().unwrap())
            };
            let want = run();
            let blocks = (0..PLANE.0.div_ceil(8) * PLANE.1.div_ceil(8)).map(|i| Some(i % ranks));
            s.place(BlockMap::new(PLANE, (8, 8), blocks).unwrap()).unwrap();
            assert!(run() == want, "{ranks} ranks");
        });
    }
}

#[test]
fn loops_end_and_are_watched_as_in_strips() {
    for (ranks, separate) in [(1, true), (2, false)] {
        ThreadComm::run(ranks, |comm| {
            let (s, told) = explained(separate, comm);
            let run = || {
                let (u, ..) = begin(&s);
                let sea = sea(&s);
                let step = |u: &Image<f32>| sea.select(u.correlate(&cross()) * 0.9, 0.0);
                let until = Until::below(1e-2, 200).every(7);
                let done = s.iterate(u.clone(), until, step).unwrap();
                let mut seen = Vec::new();
                let watched = s.iterate_watched(done.state.clone(), 20, step, 6, |n, u| {
                    seen.push((n, u.to_vec()?));
                    Ok(if n == 12 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
                });
                let watched = watched.unwrap();
                assert_eq!((done.ending, watched.ending, watched.steps), (Ending::Converged, Ending::Stopped, 12));
                (done.steps, done.change, done.state.to_vec().unwrap(), seen, watched.state.to_vec().unwrap())
            };
            let want = run();
            assert_eq!(told.load(Ordering::Relaxed), 0);
            s.place(map((8, 8), |i| i % ranks)).unwrap();
            assert!(run() == want, "{ranks} ranks");
            // Between measured steps, of which a device of its own is one ahead, and between watched ones.
            assert_eq!(told.load(Ordering::Relaxed), want.0 / 7 + usize::from(separate) + 2);
        });
    }
}

/// The pixels that a rank needs from others, by definition: those of other ranks within reach of a
/// pixel of its own, beyond the edges on a ring or nowhere.
fn counted(drawn: &[[usize; 4]; 3], ring: bool, rank: usize) -> usize {
    const REACH: isize = 2;
    let (height, width) = (30, 40);
    let owner = |y: usize, x: usize| drawn[y / 10][x / 10];
    let near = |at: usize, n: usize| {
        let all = (-REACH..=REACH).map(move |d| at.cast_signed() + d);
        all.filter(move |at| ring || (0..n.cast_signed()).contains(at))
            .map(move |at| at.rem_euclid(n.cast_signed()).unsigned_abs())
    };
    let reached = |y: usize, x: usize| near(y, height).any(|v| near(x, width).any(|u| owner(v, u) == rank));
    (0..height).map(|y| (0..width).filter(|x| owner(y, *x) != rank && reached(y, *x)).count()).sum()
}

#[test]
fn ranks_exchange_what_their_blocks_need_in_one_message() {
    // Each rank's blocks are one rectangle.
    let drawn = [[0, 0, 1, 1], [0, 0, 1, 1], [2, 2, 2, 2]];
    for border in [Border::Constant(0.0), Border::Wrap] {
        let sent = |steps: usize| -> Vec<Load> {
            ThreadComm::run(3, |comm| {
                let s = builder(false).communicator(Arc::new(comm)).build().unwrap();
                let ranks = drawn.as_flattened().iter().map(|r| Some(*r));
                s.place(BlockMap::new((30, 40), (10, 10), ranks).unwrap()).unwrap();
                let u = Image::from_fn(&s, 30, 40, |y, x| (y * x) as f32);
                let before = s.stats().sent;
                let mean = Filter::dense(5, 5, vec![0.04; 25]);
                s.iterate(u, steps, |u: &Image<f32>| u.with_border(border).correlate(&mean)).unwrap();
                let after = s.stats().sent;
                Load { messages: after.messages - before.messages, bytes: after.bytes - before.bytes }
            })
        };
        let (few, many) = (sent(2), sent(5));
        let difference = |a: fn(&Load) -> usize| -> usize { many.iter().zip(&few).map(|(m, f)| a(m) - a(f)).sum() };
        assert_eq!(difference(|load| load.messages), 3 * 6); // each rank to two others
        let pixels: usize = (0..3).map(|rank| counted(&drawn, border == Border::Wrap, rank)).sum();
        assert_eq!(difference(|load| load.bytes), 3 * 4 * pixels);
    }
}

#[test]
fn land_that_a_step_changes_is_named() {
    for ranks in [1, 2] {
        ThreadComm::run(ranks, |comm| {
            let s = builder(false).communicator(Arc::new(comm)).build().unwrap();
            let (u, ..) = begin(&s);
            s.place(map((4, 4), |i| i % ranks)).unwrap();
            let spread = s.iterate((u.clone(), u.clone()), 3, |(u, v)| (u.clone(), v.correlate(&cross()))).map(drop);
            let told = spread.unwrap_err().to_string();
            assert!(
                told.starts_with(
                    "iterate: a step changes row 0, column 28 of image 1 of the state, in a block that is left out; "
                ),
                "{told}"
            );
            assert_eq!(u.to_vec().unwrap().len(), PLANE.0 * PLANE.1);
            // Land between blocks, which is computed with them.
            s.place(BlockMap::new(PLANE, (PLANE.0, 11), [Some(0), None, Some(0)]).unwrap()).unwrap();
            let column = Image::<i32>::index(&s, Shape::new(PLANE.0, PLANE.1, 1), Axis::Columns);
            let (west, east) = (column.lt(11), column.ge(22));
            let step = |u: &Image<f32>| west.select(u * 0.5, east.select(u * 0.25, 0.0));
            let told = s.iterate(Image::constant(&s, PLANE, 5.0f32), 4, step).map(drop).unwrap_err().to_string();
            assert!(told.contains("a step changes row 0, column 11 of image 0"), "{told}");
            let kept = |u: &Image<f32>| west.select(u * 0.5, east.select(u * 0.25, u));
            let done = s.iterate(Image::constant(&s, PLANE, 5.0f32), 4, kept).unwrap().state.to_vec().unwrap();
            assert_eq!((done[0], done[15], done[30]), (0.3125, 5.0, 0.01953125));
        });
    }
}

#[test]
fn a_step_that_reduces_planes_is_computed_in_strips() {
    ThreadComm::run(2, |comm| {
        let told = Arc::new(Mutex::new(String::new()));
        let sink = Arc::clone(&told);
        let explained = move |text: &str| sink.lock().unwrap().push_str(text);
        let s = builder(false).communicator(Arc::new(comm)).explain(explained).build().unwrap();
        let sea = sea(&s);
        let (u, ..) = begin(&s);
        let run =
            |step: &dyn Fn(&Image<f32>) -> Image<f32>| s.iterate(u.clone(), 3, step).unwrap().state.to_vec().unwrap();
        let mean = |u: &Image<f32>| sea.select(u - u.mean() * 0.1, 0.0);
        let want = run(&mean);
        s.place(map((8, 8), |i| i % 2)).unwrap();
        assert_eq!(run(&mean), want);
        assert!(!told.lock().unwrap().contains("blocks:"), "in blocks");
        run(&|u| sea.select(u * 0.5, 0.0));
        let told = told.lock().unwrap();
        assert!(told.contains("3x4 blocks of 8x8, 0 left out, on 2 ranks"), "{told}");
    });
}

#[test]
fn maps_of_other_ranks_are_refused() {
    let s = builder(false).build().unwrap();
    let told = s.place(map((8, 8), |i| i % 3)).unwrap_err().to_string();
    assert!(told.contains("a map of blocks names rank 2, and the session has 1"), "{told}");
    let apart = ThreadComm::run(2, |comm| {
        let size = if horus_core::comm::Communicator::rank(&comm) == 0 { 8 } else { 4 };
        let s = builder(false).communicator(Arc::new(comm)).build().unwrap();
        s.place(map((size, 8), |i| i % 2)).unwrap_err().to_string()
    });
    assert!(apart.iter().all(|told| told.contains("rank 0 reached `placing 3x4 blocks of 8x8")), "{apart:?}");
}

/// The state after relaxed steps of the cross, pixel by pixel: within blocks of the rank of `rank_of`
/// (`None`: land) each pixel has what its rank has by then, and what others had at an exchange.
fn relaxed_by_hand(
    (block, rank_of): ((usize, usize), impl Fn(usize, usize) -> Option<usize>),
    (age, every): (usize, usize),
    steps: usize,
    begin: Vec<f64>,
) -> Vec<f64> {
    let (height, width) = PLANE;
    let mut now = begin.clone();
    let mut sent = vec![begin];
    for step in 1..=steps {
        let seen = &sent[(sent.len() - 1).saturating_sub(age)];
        for i in 0..height.div_ceil(block.0) * width.div_ceil(block.1) {
            let (down, across) = (i / width.div_ceil(block.1), i % width.div_ceil(block.1));
            let Some(rank) = rank_of(down, across) else { continue };
            let before = now.clone();
            for y in down * block.0..((down + 1) * block.0).min(height) {
                for x in across * block.1..((across + 1) * block.1).min(width) {
                    let at = |dy: isize, dx: isize| {
                        let there = (y.checked_add_signed(dy), x.checked_add_signed(dx));
                        let (Some(y), Some(x)) = there else { return 1.0 };
                        if y >= height || x >= width {
                            return 1.0;
                        }
                        let its = rank_of(y / block.0, x / block.1);
                        if its.is_none_or(|r| r == rank) { before[y * width + x] } else { seen[y * width + x] }
                    };
                    let sum = at(-1, 0) + at(0, -1) + at(0, 1) + at(1, 0);
                    now[y * width + x] = if is_sea(y, x) { 0.25 * sum } else { 0.0 };
                }
            }
        }
        if step % every == 0 {
            sent.push(now.clone());
        }
    }
    now
}

/// Sums are exact for so few steps, in any order.
#[test]
fn relaxed_blocks_go_on_with_old_pixels_of_other_ranks() {
    const STEPS: usize = 11;
    let first = |y: usize, x: usize| if is_sea(y, x) { ((y * 31 + x * 17) % 101) as f64 } else { 0.0 };
    for [kind, of, age, every] in covering([4, 3, 3, 2]) {
        let ((ranks, separate), block) =
            ([(1, false), (2, true), (3, false), (5, false)][kind], [(8, 8), (5, 31), (3, 4)][of]);
        let (age, every) = ([0, 2, 20][age], [1, 3][every]);
        let map = || map(block, |i| i / 3 % ranks).exchanging_every(every).unwrap().relaxed(age);
        let (across, ranks_of) = (PLANE.1.div_ceil(block.1), dealt(block, |i| i / 3 % ranks));
        let begin = (0..PLANE.0 * PLANE.1).map(|i| first(i / PLANE.1, i % PLANE.1)).collect();
        let want = relaxed_by_hand((block, |y, x| ranks_of[y * across + x]), (age, every), STEPS, begin);
        let want: Vec<u64> = want.into_iter().map(f64::to_bits).collect();
        ThreadComm::run(ranks, |comm| {
            let (s, told) = explained(separate, comm);
            s.place(map()).unwrap();
            let (begin, sea) = (Image::from_fn(&s, PLANE.0, PLANE.1, first), sea(&s));
            let step = |u: &Image<f64>| sea.select(u.with_border(Border::Constant(1.0)).correlate(&cross()), 0.0);
            let done = s.iterate(begin, STEPS, step).unwrap().state.to_vec().unwrap();
            assert!(told.load(Ordering::Relaxed) > 0, "in strips: {}", map());
            let done: Vec<u64> = done.into_iter().map(f64::to_bits).collect();
            assert!(done == want, "{}, {ranks} ranks", map());
        });
    }
}

#[test]
fn relaxed_loops_that_may_not_converge_are_refused() {
    let s = builder(false).build().unwrap();
    s.place(map((8, 8), |_| 0).relaxed(1)).unwrap();
    let (u, mask) = (Image::<f64>::zeros(&s, PLANE), Image::<f64>::zeros(&s, PLANE).gt(0.5));
    let (zero, same) = (Border::Constant(0.0), Border::Replicate);
    let cross = |tap: f64, centre: f64| {
        Filter::sparse([(-1, 0), (0, -1), (0, 0), (0, 1), (1, 0)], [tap, tap, centre, tap, tap])
    };
    let by = |border: Border, filter: Filter| move |u: &Image<f64>| u.with_border(border).correlate(&filter);
    let three = [0.25, 0.5, 0.25];
    type Step<'a> = Box<dyn Fn(&Image<f64>) -> Image<f64> + 'a>;
    let steps: [(Step<'_>, Option<&str>); 27] = [
        (Box::new(by(zero, cross(0.25, 0.0))), None),
        (Box::new(by(zero, cross(0.2, 0.2))), None),
        (Box::new(by(same, cross(0.2, 0.1))), None),
        (Box::new(by(same, cross(0.25, 0.0))), Some("change by 1")),
        (Box::new(by(zero, cross(0.3, -0.2))), Some("change by 1.4")),
        (Box::new(by(zero, cross(-0.25, 0.5))), Some("change by 1.5")),
        (Box::new(by(zero, cross(0.0, 1.0))), Some("change by 1")),
        (Box::new(by(zero, cross(0.0, f64::NAN))), Some("change by inf")),
        (Box::new(|u| u.with_border(zero).gauss(1.0) * 0.5 + 3.0), None),
        // One by rounding, and beside a constant border; what drains has a weight.
        (Box::new(|u| u.with_border(zero).separable(&Filter::row(three), &Filter::column(three))), None),
        (
            Box::new(|u| u.with_border(same).separable(&Filter::row(three), &Filter::column(three))),
            Some("change by 1 "),
        ),
        (
            Box::new(|u| u.with_border(zero).separable(&Filter::row(three), &Filter::column([0.0; 3])) - u),
            Some("by 1 "),
        ),
        (Box::new(|u| u.with_border(same).correlate(&Filter::row(vec![0.1; 10])).neg()), Some("change by ")),
        (Box::new(|u| u.neg() + u.with_border(zero).shift(0, 1, 0) * 0.0), Some("change by 1 ")),
        (Box::new(|u| u.neg() + u.with_border(zero).shift(0, 1, 0) * 1e-17), Some("change by 1 ")),
        (Box::new(|u| u.with_border(zero).shift(0, 1, 0) * 0.01 + u * 0.99), None),
        (Box::new(|u| (u.with_border(zero).shift(0, 1, 0) + u.with_border(zero).shift(0, -1, 0)) * 0.5), None),
        (
            Box::new(|u| u.with_border(zero).shift(0, 1, 0).max(u.with_border(zero).shift(0, -1, 0))),
            Some("change by 1"),
        ),
        (Box::new(|u| mask.select(u.with_border(zero).correlate(&cross(0.25, 0.0)), 2.0)), None),
        (
            Box::new(|u| mask.select(u.with_border(zero).shift(0, 1, 0), u.with_border(zero).shift(0, -1, 0))),
            Some("by 1"),
        ),
        (Box::new(|u| (u * 0.5).max(u.mul_add(0.25, u * 0.25)).abs()), None),
        (Box::new(|u| u / 2.0 - 1.0), None),
        (Box::new(|u| (u * 0.9).clamp(-1.0, 1.0)), None),
        (Box::new(|u| u.median(3) * 0.5), Some("median 3x3 (recorded at")),
        (Box::new(|u| u * u * 0.5), Some("mul (recorded at")),
        (Box::new(|u| u.gt(0.5).select(u * 0.5, 0.0)), Some("gt[0.5f64] (recorded at")),
        (Box::new(|u| (u * 0.1).convert::<i32>().convert()), Some("convert (recorded at")),
    ];
    for (i, (step, refused)) in steps.iter().enumerate() {
        let said = s.iterate(u.clone(), 3, step).map(|_| ()).map_err(|e| e.to_string());
        match refused {
            None => assert!(said.is_ok(), "step {i}: {said:?}"),
            Some(why) => {
                let said = said.expect_err(&format!("step {i}"));
                assert!(said.contains("nothing shows that the loop converges"), "step {i}: {said}");
                assert!(said.contains(why), "step {i}: {said}");
            }
        }
    }
    // A state of several images needs less than 1 for each.
    let two = s.iterate((u.clone(), u.clone()), 3, |(a, b)| (b * 0.5, a * 1.0)).map(|_| ()).unwrap_err();
    assert!(two.to_string().contains("change by 1"), "{two}");
    s.iterate((u.clone(), u), 3, |(a, b)| (b * 0.5, a * 0.5 + b * 0.25)).unwrap();
}

/// A ring of a field, a number and a volume, in blocks of several ranks, looked at meanwhile.
#[test]
fn relaxed_blocks_of_several_images_converge() {
    type Mixed = (Image<f32>, Image<f64>, Image<f64>);
    let step = |(u, n, v): &Mixed| {
        let around = u.with_border(Border::Wrap).gauss(1.0) * 0.5;
        (around + v.slice(2).convert::<f32>() * 0.25, n * 0.5 + 1.0, v * 0.5 + u.convert::<f64>() * 0.25 + n * 0.125)
    };
    let ends = |ranks: usize, age: Option<usize>| {
        let each = ThreadComm::run(ranks, |comm| {
            let (s, told) = explained(ranks == 3, comm);
            let map = BlockMap::new(PLANE, (6, 11), (0..12).map(|i| Some(i % ranks))).unwrap();
            s.place(age.map(|age| map.relaxed(age))).unwrap();
            let (u, _, v) = begin(&s);
            let mut seen = 0;
            let watch = |_, _: &Mixed| {
                seen += 1;
                Ok(ControlFlow::Continue(()))
            };
            let begin = (u, Image::zeros(&s, (1, 1)), v);
            let (u, n, v) = s.iterate_watched(begin, 600, step, 300, watch).unwrap().state;
            assert!(seen == 2 && (told.load(Ordering::Relaxed) > 0) == age.is_some());
            let u = u.to_vec().unwrap().into_iter().map(f64::from);
            u.chain(n.to_vec().unwrap()).chain(v.to_vec().unwrap()).collect::<Vec<f64>>()
        });
        each.into_iter().next().unwrap()
    };
    let want = ends(1, None);
    assert!(want.iter().all(|pixel| *pixel > 0.3), "the solution is not 0");
    for (ranks, age) in [(1, 0), (2, 1), (3, 5)] {
        let apart = ends(ranks, Some(age)).iter().zip(&want).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        // Some roundings of single precision.
        assert!(apart < 1e-6, "{ranks} ranks, age {age}: {apart:e}");
    }
}
