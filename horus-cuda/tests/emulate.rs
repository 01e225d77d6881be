//! Runs the generated kernels on the host, one fibre per GPU thread, and compares them with the
//! definitions bit by bit.
//!
//! The host's C++ compiler replaces NVRTC: it compiles the same sources as a GPU runs, between
//! `kernels/emulate.h` and `kernels/emulate_main.h`.
#![allow(unsafe_code, reason = "loads the kernels that the host's compiler made")]

mod conformance;

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock};

use horus_core::device::{Geometry, Launch, LaunchInput, Memory};
use horus_core::dtype::DType;
use horus_core::host::StridedCopy;
use horus_core::host::buffer::HostBuffer;
use horus_core::image::Image;
use horus_core::ir::kernel::{FilterSource, Kernel, LeafOp};
use horus_core::ops::Whole;
use horus_core::ops::geometric::Interpolation;
use horus_core::session::Session;
use horus_core::shape::{Border, Shape, Window};
use horus_cuda::codegen::{
    Generated, KernelLimits, KernelPart, LaunchSequence, Pointer, Shapes, generate_bounded, generate_part,
};
use horus_cuda::tuning::{Tuning, all_sizes, candidates, lookup};
use horus_cuda::workloads::{conv2d, convrot_default};
use horus_cuda_kernels as kernels;
use horus_testing::cases::part;
use horus_testing::reference::kernel::HostImage;

use conformance::cases::{ConformanceLaunch, Fill, cases};
use conformance::{compiled, some};
use horus_cuda::recorder::{RecordedLaunch, RecordingDevice};

const HEAD: &str = include_str!("../../kernels/emulate.h");
const MAIN: &str = include_str!("../../kernels/emulate_main.h");

/// The headers of generated sources, each after those that it needs: compiled once for all programs
/// of a library.
const HEADERS: [&str; 22] = [
    kernels::PRELUDE,
    kernels::MATH,
    kernels::CAST,
    kernels::AROUND,
    kernels::POINTWISE,
    kernels::TILE,
    kernels::DENSE,
    kernels::NEAR,
    kernels::BYTES,
    kernels::SEPARABLE,
    kernels::GATHER,
    kernels::REDUCE,
    kernels::LABELS,
    kernels::COMPONENTS,
    kernels::RECONSTRUCTION,
    kernels::DISTANCE,
    kernels::SAMPLING,
    kernels::STEPS,
    kernels::LAYOUT,
    kernels::PRODUCT,
    kernels::FOURIER,
    kernels::WINDOWED,
];

/// The beginning of sources for pixels of several samples, before their number.
const SAMPLES: &str = "#define HS_SAMPLES ";

type EmulatedKernel = unsafe extern "C" fn(*const u8, u32, u32, u32, u32);

/// Compiles programs into one library, with a namespace each and numbered entry points.
fn compile(programs: &[Generated], dir: &Path, name: &str) -> libloading::Library {
    let mut text = String::from(HEAD);
    // Programs without their traffic are in a library of their own.
    let first = if programs[0].source.starts_with(kernels::MATH_ONLY) { kernels::MATH_ONLY } else { "" };
    text.push_str(first);
    // The headers are others for pixels of several samples.
    let samples = |p: &Generated| {
        let whole = p.source.strip_prefix(first).unwrap_or(&p.source);
        whole.strip_prefix(SAMPLES)?.lines().next()?.parse().ok()
    };
    let of: Vec<u32> = programs.iter().map(|p| samples(p).unwrap_or(1)).collect();
    for n in of.iter().copied().collect::<BTreeSet<u32>>() {
        let _ = writeln!(text, "#undef HS_SAMPLES\n{SAMPLES}{n}\nnamespace samples{n} {{\n{}", HEADERS.concat());
        for (i, p) in programs.iter().enumerate().filter(|(i, _)| of[*i] == n) {
            let whole = p.source.strip_prefix(first).unwrap_or(&p.source);
            let whole = whole.strip_prefix(&format!("{SAMPLES}{n}\n")).unwrap_or(whole);
            let own = HEADERS.iter().fold(whole.to_owned(), |source, header| source.replace(header, ""));
            let source = own.replace("extern \"C\" __global__", "static");
            let main = MAIN.replace("extern \"C\" void hs_run", &format!("extern \"C\" void hs_run{i}"));
            let _ = writeln!(text, "namespace case{i} {{\n{source}\n{main}\n}}");
        }
        text.push_str("}\n");
    }
    let (source, library) = (dir.join(format!("{name}.cpp")), dir.join(format!("{name}.so")));
    std::fs::write(&source, text).unwrap();
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "g++".into());
    let out = Command::new(&compiler)
        .args(["-std=c++17", "-Og", "-w", "-mfma", "-ffp-contract=off", "-fno-builtin-fma", "-shared", "-fPIC"])
        // Fibres jump between stacks, which a checked longjmp reports as an error.
        .arg("-U_FORTIFY_SOURCE")
        // A GPU cannot read across word boundaries.
        .args(["-fsanitize=alignment", "-fno-sanitize-recover=alignment"])
        .arg("-o")
        .arg(&library)
        .arg(&source)
        .output()
        .unwrap_or_else(|e| panic!("the emulation needs a C++ compiler ({compiler}: {e}); set CXX"));
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
            .lines()
            .filter(|l| l.contains("error"))
            .take(20)
            .collect::<Vec<_>>()
            .join("\n")
    );
    // SAFETY: the library was just built from sources of this repository; it has no initialisers of
    // note.
    unsafe { libloading::Library::new(library) }.unwrap()
}

fn program(case: &ConformanceLaunch, tuning: &Tuning, limits: KernelLimits) -> Generated {
    let shapes = Shapes { inputs: &case.inputs, output: case.output, rows: case.rows };
    let program = generate_bounded(&case.kernel, &shapes, tuning, limits).unwrap();
    assert!(program.params.len() <= 4096, "{}: more parameters than every driver takes", case.name);
    program
}

/// The fold that a reduction along rows may make itself, of all its rows.
fn fold_of(case: &ConformanceLaunch) -> Option<ConformanceLaunch> {
    let whole = Window::whole(case.output.shape.height);
    let how = match &case.kernel {
        Kernel::MapReduce(_, how) | Kernel::Whole(Whole::RowReduce(how)) => how.fold(),
        _ => return None,
    };
    let shape = Shape::new(1, how.columns(), 1);
    let output = Geometry { shape, dtype: case.output.dtype, window: Window::whole(1) };
    (case.rows == whole && case.output.window == whole).then(|| ConformanceLaunch {
        name: format!("the fold of {}", case.name),
        kernel: Kernel::Whole(Whole::Fold(how)),
        inputs: vec![case.output],
        output,
        rows: output.window,
        fill: case.fill,
    })
}

/// Runs a program, which writes the fold of a reduction's rows to `total`, if there is one.
fn run(
    library: &libloading::Library,
    index: usize,
    p: &Generated,
    inputs: &[HostImage],
    out: &mut [HostImage],
    mut total: Option<&mut HostImage>,
) {
    let mut params = p.params.clone();
    let mut done = 0u32;
    let mut scratch = vec![0xa5u8; p.sequence.map_or(0, |passes| passes.scratch)];
    for &(at, what) in &p.pointers {
        let address = match what {
            Pointer::Output { offset } => out[0].bytes.as_mut_ptr() as usize + offset,
            Pointer::FurtherOutput { index, offset } => out[1 + index].bytes.as_mut_ptr() as usize + offset,
            Pointer::Input { index, offset } => inputs[index].bytes.as_ptr() as usize + offset,
            Pointer::Table => p.table.as_ptr() as usize,
            Pointer::Scratch => scratch.as_mut_ptr() as usize,
            Pointer::Total => total.as_mut().map_or(0, |total| total.bytes.as_mut_ptr() as usize),
            Pointer::Done => &raw mut done as usize,
        };
        params[at..at + 8].copy_from_slice(&address.to_ne_bytes());
    }
    // SAFETY: the symbol is the function that `emulate_main.h` defines for this program.
    let run = unsafe { library.get::<EmulatedKernel>(format!("hs_run{index}").as_bytes()) }.unwrap();
    // SAFETY: the parameters are the program's own struct, whose pointers lead to live buffers of
    // the sizes that the case's geometries say.
    let launch = |params: &[u8]| unsafe { run(params.as_ptr(), p.grid[0], p.grid[1], p.block, p.shared) };
    match p.sequence {
        None => launch(&params),
        Some(passes) => {
            let mut one = |pass: u32| {
                params[..4].copy_from_slice(&pass.to_ne_bytes());
                launch(&params);
            };
            (0..passes.count).for_each(&mut one);
            let mut left = passes.repeated > 0;
            while left {
                scratch[..LaunchSequence::FLAG].fill(0);
                (passes.count..passes.count + passes.repeated).for_each(&mut one);
                left = scratch[..LaunchSequence::FLAG] != [0; LaunchSequence::FLAG];
            }
        }
    }
}

/// The outputs of a case by the definitions: evaluated once, as tests share cases.
fn expected(case: &ConformanceLaunch, inputs: &[HostImage]) -> Arc<Vec<HostImage>> {
    type Known = HashMap<String, Arc<OnceLock<Arc<Vec<HostImage>>>>>;
    static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);
    let ConformanceLaunch { kernel, inputs: geometries, output, rows, fill, name: _ } = case;
    let key = format!("{kernel:?} {geometries:?} {output:?} {rows:?} {fill:?}");
    let outputs = KNOWN.lock().unwrap().entry(key).or_default().clone();
    outputs.get_or_init(|| Arc::new(case.expected(inputs))).clone()
}

/// Runs cases, each with its own tuning, and compares with the host's evaluation, in batches on all
/// cores, as some take minutes.
fn check(jobs: Vec<(ConformanceLaunch, Tuning, KernelLimits)>, name: &str) {
    let dir = tempfile::tempdir().unwrap();
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let batches: Vec<_> = jobs.chunks(40).collect();
    let work = || {
        loop {
            let batch = next.fetch_add(1, Ordering::Relaxed);
            let Some(jobs) = batches.get(batch) else { return };
            let programs: Vec<Generated> = jobs.iter().map(|(c, t, l)| program(c, t, *l)).collect();
            // Programs of several sizes may have one source.
            let mut distinct: Vec<Generated> = programs.clone();
            distinct.sort_by(|a, b| a.source.cmp(&b.source));
            distinct.dedup_by(|a, b| a.source == b.source);
            let library = compile(&distinct, dir.path(), &format!("{name}{batch}"));
            for ((case, tuning, _), p) in jobs.iter().zip(&programs) {
                let i = distinct.partition_point(|d| d.source < p.source);
                let inputs = case.images();
                let mut ours = case.outputs();
                let fold = fold_of(case);
                let mut total = fold.as_ref().map(|fold| HostImage::zeroed(fold.output));
                run(&library, i, p, &inputs, &mut ours, total.as_mut());
                let all = fold.zip(total).and_then(|(fold, total)| fold.difference(&[total], &fold.expected(&ours)));
                if let Some(difference) = case.difference(&ours, &expected(case, &inputs)).or(all) {
                    failures.lock().unwrap().push(format!("{} {tuning:?}: {difference}", case.name));
                }
            }
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..cores.min(batches.len())).for_each(|_| drop(scope.spawn(work))));
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} differ:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn pieces_are_copied_byte_by_byte_whatever_their_alignment() {
    let shape = Shape::new(64, 40_000, 1);
    let geometry = Geometry { shape, dtype: DType::U8, window: Window::whole(shape.height) };
    let piece = |i: usize| StridedCopy {
        from: 4 * i * 40_000 + [16 * i, 4 * i, 3 * i][i % 3],
        to: 4 * i * 40_000 + [16, 8, 5][i % 3],
        bytes: [32, 20_004, 33_333, 1, 16, 16_384][i % 6],
        rows: 1 + i % 4,
        from_stride: 40_000,
        to_stride: [40_000, 39_996, 39_999][i % 3],
    };
    let pieces: Vec<StridedCopy> = (0..15).map(piece).collect();
    let source = HostImage::random(geometry, 3);
    let (mut got, mut want) = (HostImage::zeroed(geometry), HostImage::zeroed(geometry));
    for (from, to, bytes) in pieces.iter().flat_map(|p| p.runs()) {
        want.bytes[to..to + bytes].copy_from_slice(&source.bytes[from..from + bytes]);
    }
    let program = horus_cuda::pieces::program(&pieces);
    let dir = tempfile::tempdir().unwrap();
    let library = compile(std::slice::from_ref(&program), dir.path(), "pieces");
    run(&library, 0, &program, &[source], std::slice::from_mut(&mut got), None);
    assert!(got.bytes == want.bytes);
}

/// A GPU checks each launch before it generates anything.
#[test]
fn every_case_is_a_launch_that_devices_take() {
    for case in cases() {
        let memory = |g: &Geometry| Memory::Host(HostBuffer::zeroed(g.bytes()));
        let memories: Vec<Memory> = case.inputs.iter().map(memory).collect();
        let inputs: Vec<LaunchInput<'_>> =
            memories.iter().zip(&case.inputs).map(|(memory, &geometry)| LaunchInput { memory, geometry }).collect();
        let (kernel, geometry, rows) = (&case.kernel, case.output, case.rows);
        let mut outputs: Vec<Memory> = case.outputs().iter().map(|o| memory(&o.geometry)).collect();
        let mut outputs = outputs.iter_mut();
        let output = outputs.next().expect("an output");
        let more: &mut [&mut Memory] = &mut outputs.collect::<Vec<_>>();
        let launch = Launch { kernel, inputs: &inputs, output, additional_outputs: more, geometry, rows };
        horus_core::device::check::check(&launch).unwrap_or_else(|e| panic!("{}: {e}", case.name));
    }
}

fn tuned(case: &ConformanceLaunch) -> Tuning {
    lookup(&case.kernel, case.inputs.first().map_or(case.output.dtype, |g| g.dtype), 90)
}

#[test]
fn kernels_follow_the_definitions_to_the_bit() {
    // Every other case as for a large image, the rest as for small ones of all sizes.
    let jobs = some([1, 40]).into_iter().enumerate().map(|(turn, c)| {
        let dtype = c.inputs.first().map_or(c.output.dtype, |g| g.dtype);
        let sizes = all_sizes(&c.kernel, dtype, 90);
        let t = if turn % 2 == 0 { sizes[0] } else { sizes[turn / 2 % sizes.len()] };
        (c, t, KernelLimits { shared: 227 << 10 })
    });
    check(jobs.collect(), "default");
}

#[test]
fn large_filters_of_bytes_are_products_of_matrices() {
    let limits = KernelLimits { shared: 227 << 10 };
    for case in cases().into_iter().filter(|c| c.name.starts_with("correlate bytes")) {
        let products = program(&case, &tuned(&case), limits).source.contains("hs_bytes<");
        assert_eq!(products, !case.name.contains(" 3x3 "), "{}", case.name);
    }
}

/// The launches of line detectors recorded from a session, on a small picture.
fn detectors() -> Vec<ConformanceLaunch> {
    const H: usize = 64;
    const W: usize = 256;
    let device = RecordingDevice::new().unwrap();
    let launches = device.launches();
    let session = Session::on(Box::new(device)).build().unwrap();
    let image = Image::from_slice(&session, (H, W), &vec![7u8; H * W]).convert::<f32>() / 255.0;
    let scales: Vec<(f64, f64)> = [3.0, 5.0, 7.0].iter().flat_map(|su| [1.0, 2.0, 3.0].map(|sv| (*su, sv))).collect();
    let contrast =
        |across: Image<f32>, smooth: Image<f32>, su: f64, sv: f64| across.absdiv(smooth, 1e-3) * (su * sv) as f32;
    let mut results = Vec::new();
    for theta in [0.0, 15.0, 90.0, 135.0] {
        let turned = image.with_border(Border::Reflect101).rotate(theta, Interpolation::Bilinear);
        let mut of_image = Image::zeros(image.session(), image.shape());
        let (mut of_filters, mut of_directions) =
            (Image::zeros(image.session(), image.shape()), Image::zeros(image.session(), image.shape()));
        for &(su, sv) in &scales {
            let [across, smooth] = [2, 0].map(|order| turned.gauss_xy(su, sv, 0, order));
            of_image = of_image.max(contrast(across, smooth, su, sv));
            let [across, smooth] = [2, 0].map(|order| image.gauss_2d(theta, su, sv, 0, order));
            of_filters = of_filters.max(contrast(across, smooth, su, sv));
            let [across, smooth] = [2, 0].map(|order| image.gauss_uv(theta, su, sv, 0, order));
            of_directions = of_directions.max(contrast(across, smooth, su, sv));
        }
        results.extend([of_image.rotate(-theta, Interpolation::Bilinear), of_filters, of_directions]);
    }
    // One result over all orientations, as in the detectors.
    for scales in [&scales[..], &scales[6..]] {
        let mut result = Image::zeros(image.session(), image.shape());
        for theta in [0.0, 90.0] {
            for &(su, sv) in scales {
                let [across, smooth] = [2, 0].map(|order| image.gauss_2d(theta, su, sv, 0, order));
                result = result.max(contrast(across, smooth, su, sv));
            }
        }
        results.push(result.clone());
        session.evaluate().unwrap();
    }
    session.evaluate().unwrap();
    let mut cases: Vec<ConformanceLaunch> = Vec::new();
    for (i, RecordedLaunch { kernel, inputs, output, rows }) in launches.get().into_iter().enumerate() {
        let known = cases.iter().any(|c| (&c.kernel, &c.inputs, c.output) == (&kernel, &inputs, output));
        if !known && !matches!(kernel, Kernel::Whole(Whole::Merge(_)) | Kernel::Source(_)) {
            let name = format!("launch {i} of the detectors, {}", kernel.name());
            cases.push(ConformanceLaunch { name, kernel, inputs, output, rows, fill: Fill::Random });
        }
    }
    cases
}

#[test]
fn kernels_of_the_detectors_follow_the_definitions() {
    let jobs = detectors().into_iter().map(|c| {
        let t = tuned(&c);
        (c, t, KernelLimits { shared: 227 << 10 })
    });
    let jobs: Vec<_> = jobs.collect();
    // Large templates occur in both of their forms.
    for form in ["hs_stage_any<", "hs_stage_called<", "hs_column_called<"] {
        let has = |(case, tuning, limits): &(ConformanceLaunch, Tuning, KernelLimits)| {
            program(case, tuning, *limits).source.contains(form)
        };
        assert!(jobs.iter().any(has), "{form} is in no kernel");
    }
    check(part(jobs, |all| all.into_iter().step_by(2).collect()), "detectors");
}

/// Cases that together have every form of reading, filtering and storing pixels, with the part of each.
fn parts(part: KernelPart) -> Vec<(ConformanceLaunch, Kernel, Generated)> {
    const FORMS: [&str; 21] = [
        "hs_load_pixels<",
        "hs_store_pixels<",
        "hs_load_block(",
        "hs_repeat_row",
        "hs_repeat_column",
        "hs_load_lines",
        "hs_moved<",
        "hs_nearest<",
        "hs_bilinear<",
        "hs_bicubic<",
        "hs_load_loose_tile<",
        "hs_dense<",
        "hs_sparse<",
        "hs_near<",
        "hs_near_rows<",
        "hs_bytes<",
        "hs_median",
        "hs_stage<",
        "hs_stage_any<",
        "hs_column_looped<",
        "hs_shifted<",
    ];
    let limits = KernelLimits { shared: 227 << 10 };
    let of_bodies = |source: &str| source[source.find("struct hs_params").unwrap_or(0)..].to_owned();
    let mut unseen = FORMS.to_vec();
    let mut jobs = Vec::new();
    for case in compiled().into_iter().filter(|c| matches!(c.kernel, Kernel::Map(_))) {
        let tuning = tuned(&case);
        let body = of_bodies(&program(&case, &tuning, limits).source);
        let before = unseen.len();
        unseen.retain(|form| !body.contains(form));
        if unseen.len() < before {
            let shapes = Shapes { inputs: &case.inputs, output: case.output, rows: case.rows };
            let (kernel, program) = generate_part(part, &case.kernel, &shapes, &tuning, limits).unwrap().unwrap();
            jobs.push((case, kernel, program));
        }
    }
    assert!(unseen.is_empty(), "no case has {unseen:?}");
    jobs
}

#[test]
fn what_a_kernel_reads_and_stores_alone_is_a_kernel_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let jobs = parts(KernelPart::Memory);
    let programs: Vec<Generated> = jobs.iter().map(|(.., program)| program.clone()).collect();
    let library = compile(&programs, dir.path(), "memory");
    for (i, (case, kernel, program)) in jobs.into_iter().enumerate() {
        let moved = ConformanceLaunch { kernel, ..case };
        let (inputs, mut ours) = (moved.images(), moved.outputs());
        run(&library, i, &program, &inputs, &mut ours, None);
        let differs = moved.difference(&ours, &moved.expected(&inputs));
        assert_eq!(differs, None, "{}: {}", moved.name, moved.kernel.name());
    }
}

/// A grid of two layers makes the arithmetic alone the whole kernel.
#[test]
fn the_arithmetic_of_a_kernel_stores_nothing_and_is_complete() {
    let dir = tempfile::tempdir().unwrap();
    let jobs = parts(KernelPart::Math);
    let programs: Vec<Generated> = jobs.iter().map(|(.., program)| program.clone()).collect();
    let library = compile(&programs, dir.path(), "math");
    // SAFETY: `emulate.h` defines the variable, which nothing reads meanwhile.
    let layers = |n: i32| unsafe { **library.get::<*mut i32>(b"hs_layers").unwrap() = n };
    for (i, (case, _, program)) in jobs.into_iter().enumerate() {
        let (inputs, mut ours) = (case.images(), case.outputs());
        layers(1);
        run(&library, i, &program, &inputs, &mut ours, None);
        assert_eq!(case.difference(&ours, &case.outputs()), None, "{} stores pixels", case.name);
        layers(2);
        run(&library, i, &program, &inputs, &mut ours, None);
        assert_eq!(case.difference(&ours, &expected(&case, &inputs)), None, "{}", case.name);
    }
}

#[test]
fn repeated_dense_filters_are_called() {
    let (shape, rows) = (Shape::new(50, 140, 1), Window::whole(50));
    let image = Geometry { shape, dtype: DType::F32, window: rows };
    let mut kernel = conv2d(2, 25);
    let Kernel::Map(map) = &mut kernel else { panic!("the pairs are one map") };
    // Equal sizes in different positions.
    (map.leaves[0], map.leaves[1]) = (map.leaves[3].clone(), map.leaves[2].clone());
    // Many filters at once, and loops: two bodies of the loop over rows, for each pair of filters.
    let tuning = Tuning { rows: 4, cols: 4, group: 2, unroll: 0, piece: 0, ..lookup(&kernel, DType::F32, 90) };
    let case = ConformanceLaunch {
        name: "two pairs".into(),
        kernel,
        inputs: vec![image],
        output: image,
        rows,
        fill: Fill::Random,
    };
    let limits = KernelLimits { shared: 227 << 10 };
    let source = program(&case, &tuning, limits).source;
    assert!(source.contains("hs_dense_called<"), "{}", &source[source.find("hs_kernel(").unwrap()..]);
    check(vec![(case, tuning, limits)], "called");
}

#[test]
fn row_passes_of_several_sizes_read_every_border() {
    let mut jobs = Vec::new();
    // Rows that begin at whole vectors, and rows that do not.
    for (border, width) in
        [(Border::Constant(0.5), 130), (Border::Constant(-2.0), 132), (Border::Wrap, 132), (Border::Reflect, 130)]
    {
        let mut kernel = convrot_default().unwrap();
        let Kernel::Map(map) = &mut kernel else { panic!("the bank is one map") };
        map.stages.iter_mut().for_each(|stage| stage.border = border);
        for leaf in &mut map.leaves {
            if let LeafOp::Correlate(FilterSource::Stage(_), _, of_columns) = &mut leaf.op {
                *of_columns = border;
            }
        }
        let (shape, rows) = (Shape::new(70, width, 1), Window::whole(70));
        let image = Geometry { shape, dtype: DType::F32, window: rows };
        let name = format!("the bank at {border:?}, {width} wide");
        let case = ConformanceLaunch { name, kernel, inputs: vec![image], output: image, rows, fill: Fill::Random };
        let tuning = tuned(&case);
        jobs.push((case, tuning, KernelLimits { shared: 227 << 10 }));
    }
    check(jobs, "borders");
}

#[test]
fn no_tuning_changes_a_result() {
    let mut jobs = Vec::new();
    for case in compiled() {
        if !["correlate 17x17 f32", "separable 19 reflect101 f32", "convrot nested", "conv2d", "mixed"]
            .contains(&case.name.as_str())
        {
            continue;
        }
        let all = candidates(&case.kernel, case.inputs[0].dtype, 90);
        let step = (all.len() / 6).max(1);
        jobs.extend(all.into_iter().step_by(step).map(|t| (case.clone(), t, KernelLimits { shared: 227 << 10 })));
    }
    check(jobs, "tuning");
}

#[test]
fn steps_are_the_same_in_tiles_of_every_shape() {
    let mut jobs = Vec::new();
    for case in compiled().into_iter().filter(|c| c.name.starts_with("4 steps") || c.name == "5 steps replicate u8") {
        let all = candidates(&case.kernel, case.inputs[0].dtype, 90);
        jobs.extend(all.into_iter().map(|t| (case.clone(), t, KernelLimits { shared: 227 << 10 })));
        let t = tuned(&case);
        jobs.extend([48 << 10, 99 << 10].map(|shared| (case.clone(), t, KernelLimits { shared })));
    }
    assert!(jobs.len() > 40);
    check(part(jobs, |all| all.into_iter().step_by(3).collect()), "tiles");
}

#[test]
fn filters_beyond_shared_memory_are_cut_or_read_directly() {
    let mut jobs = Vec::new();
    for case in compiled() {
        let name = case.name.as_str();
        let of_chains = ["correlate 17x17 of a chain f32", "separable 43 of a chain f32"];
        if ["correlate 43x43 f32", "separable 43 f32", "convrot", "conv2d"].contains(&name) || of_chains.contains(&name)
        {
            let t = tuned(&case);
            jobs.extend([24 << 10, 6 << 10].map(|shared| (case.clone(), t, KernelLimits { shared })));
        }
        // Four lines at a time, and two.
        if ["by transforms of 256x32", "by transforms of 32x512"].iter().any(|n| name.ends_with(n)) {
            let t = tuned(&case);
            jobs.extend([64 << 10, 48 << 10, 24 << 10].map(|shared| (case.clone(), t, KernelLimits { shared })));
        }
        if ["box_mean 4x9 reflect101 f32", "box_mean 1x50 wrap u8", "box_mean 71x1 constant"]
            .iter()
            .any(|n| name.starts_with(n))
        {
            jobs.extend([4 << 10, 256].map(|shared| (case.clone(), tuned(&case), KernelLimits { shared })));
        }
        // Too little for histograms.
        if name.starts_with("rank") && !name.ends_with("f64") {
            jobs.push((case.clone(), tuned(&case), KernelLimits { shared: 32 << 10 }));
        }
        // Row passes that are read in turn fit together, one after the other, or not at all.
        if ["convrot nested", "convrot by turns", "sums of columns of two stages"].contains(&name) {
            let t = Tuning { unroll: 0, group: 2, ..tuned(&case) };
            jobs.extend(
                [64 << 10, 40 << 10, 32 << 10, 24 << 10, 16 << 10]
                    .map(|s| (case.clone(), t, KernelLimits { shared: s })),
            );
        }
    }
    check(part(jobs, |all| all.into_iter().step_by(3).collect()), "small");
}
