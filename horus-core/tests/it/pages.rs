//! Pages about runs, and drawings of programs.

use std::num::NonZeroU8;
use std::sync::{Arc, Mutex};

use horus_core::comm::threads::ThreadComm;
use horus_core::cpu::device::CpuDevice;
use horus_core::plan::Transfer;
use horus_core::plan::drawing::stack;
use horus_core::prelude::*;
use horus_core::session::SessionBuilder;
use horus_testing::simulated::SimulatedDevice;

fn cpu() -> CpuDevice {
    CpuDevice::new(Some(2)).unwrap()
}

/// The result of a program, the drawings of its plans, and its page.
fn drawn<R>(builder: SessionBuilder, program: impl FnOnce(&Session) -> R) -> (R, Vec<String>, Option<String>) {
    let drawings: Arc<Mutex<Vec<String>>> = Arc::default();
    let sink = Arc::clone(&drawings);
    let keep = move |text: &str| sink.lock().unwrap().push(text.to_owned());
    let session = builder.trace(true).explain_drawings(keep).build().unwrap();
    let result = program(&session);
    let page = session.report("a <title>", &[]).unwrap();
    let drawings = drawings.lock().unwrap().clone();
    (result, drawings, page)
}

/// An element of XML: its name, its attributes, and its own text.
struct Element {
    name: String,
    attributes: String,
    text: String,
}

impl Element {
    fn number(&self, name: &str) -> f64 {
        let (_, value) = self.attributes.split_once(&format!(" {name}=\"")).unwrap_or_else(|| panic!("{name}"));
        value.split('"').next().unwrap().parse().unwrap()
    }

    fn is(&self, class: &str) -> bool {
        self.attributes.contains(&format!(" class=\"{class}\""))
    }
}

/// The elements in order; panics unless the text is well-formed XML.
fn elements(xml: &str) -> Vec<Element> {
    let (mut open, mut found, mut rest): (Vec<String>, Vec<Element>, &str) = (Vec::new(), Vec::new(), xml.trim());
    while let Some((text, after)) = rest.split_once('<') {
        assert!(!text.contains('>') && text.split('&').skip(1).all(|t| t.contains(';')), "{text}");
        if let Some(element) = found.last_mut() {
            element.text.push_str(text);
        }
        let (tag, next) = after.split_once('>').unwrap_or_else(|| panic!("an open tag: {after}"));
        rest = next;
        if let Some(end) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(end), "{tag}");
            continue;
        }
        let inner = tag.strip_suffix('/').unwrap_or(tag);
        let name = inner.split(' ').next().unwrap().to_owned();
        assert_eq!(inner.matches('"').count() % 2, 0, "{tag}");
        if inner == tag {
            open.push(name.clone());
        }
        found.push(Element { attributes: inner[name.len()..].to_owned(), name, text: String::new() });
    }
    assert!(open.is_empty() && rest.is_empty(), "{open:?} {rest}");
    found
}

/// The texts of a drawing, in order. Boxes of one part must not overlap, and each text must be inside the last box.
fn texts(drawing: &str) -> Vec<String> {
    let (mut texts, mut boxes): (Vec<String>, Vec<[f64; 4]>) = (Vec::new(), Vec::new());
    for element in elements(drawing) {
        match element.name.as_str() {
            "g" if element.attributes.contains("translate") => boxes.clear(),
            "rect" if ["image", "call", "launch", "move"].iter().any(|class| element.is(class)) => {
                let [x, y, width, height] = ["x", "y", "width", "height"].map(|name| element.number(name));
                let new = [x, y, x + width, y + height];
                for old in &boxes {
                    let apart = new[2] <= old[0] || old[2] <= new[0] || new[3] <= old[1] || old[3] <= new[1];
                    assert!(apart, "{old:?} and {new:?} in {drawing}");
                }
                boxes.push(new);
            }
            "text" => {
                let text = element.text.trim_end_matches('\n').replace("&lt;", "<").replace("&gt;", ">");
                if let (false, Some([left, top, right, bottom])) = (element.is("h"), boxes.last()) {
                    let (x, y) = (element.number("x"), element.number("y"));
                    let end = x + 6.6 * text.chars().count() as f64;
                    assert!(x >= *left && end <= *right && y - 8.0 >= *top && y <= *bottom, "{text} in {drawing}");
                }
                texts.push(text);
            }
            _ => {}
        }
    }
    texts
}

/// Texts of the program as recorded, and of what it became.
fn halves(drawing: &str) -> (Vec<String>, Vec<String>) {
    let mut texts = texts(drawing);
    let at = texts.iter().position(|text| text == "As computed").unwrap();
    let computed = texts.split_off(at);
    (texts, computed)
}

#[test]
fn drawings_show_every_call_with_its_line_and_the_launches_that_compute_it() {
    let (line, drawings, page) = drawn(Session::on(Box::new(cpu())), |session| {
        let image = samples::worms(session, 40, 60);
        let line = line!();
        let smooth = image.gauss(1.0);
        let edges = smooth.sobel(Axis::Columns).hypot(smooth.sobel(Axis::Rows));
        let again = image.gauss(1.0) * 2.0;
        (edges + again).to_vec().unwrap();
        line
    });
    let [drawing] = &drawings[..] else { panic!("{} drawings", drawings.len()) };
    let (recorded, computed) = halves(drawing);
    for (name, below) in [("gauss", 1), ("sobel", 2), ("hypot", 2), ("mul", 3), ("add", 4)] {
        let title = format!("{name}, pages.rs:{}", line + below);
        assert!(recorded.contains(&title), "{title} in {recorded:?}");
        assert!(computed.iter().any(|text| text.ends_with(&title)), "{title} in {computed:?}");
    }
    // The second blur is equal to the first: nothing computes it.
    let at = recorded.iter().position(|text| *text == format!("gauss, pages.rs:{}", line + 3)).unwrap();
    assert_eq!(recorded[at + 2], "equal to an earlier call");
    assert!(computed.iter().any(|text| text.starts_with("deliver, ")), "{computed:?}");
    let page = page.unwrap();
    assert!(page.contains(drawing.as_str()) && page.contains("<title>a &lt;title&gt;</title>"));
    // Spans of the timeline and rows of steps have the same names; no image has a number.
    let step = format!("gauss, pages.rs:{}", line + 1);
    assert!(page.contains(&format!("<td>{step}<td")) && page.contains("<br>hypot, pages.rs:"), "{page}");
    let spans: Vec<&str> = page.split("<title>launch ").skip(1).map(|rest| rest.split('<').next().unwrap()).collect();
    assert!(!spans.is_empty() && spans.iter().all(|span| span.contains("pages.rs:")), "{spans:?}");
    assert!(!page.contains("%0") && page.contains("host memory"), "{page}");
}

#[test]
fn loops_are_drawn_once_and_equal_programs_elsewhere_have_their_own_lines() {
    let program = |session: &Session| {
        let mut image = samples::worms(session, 30, 30);
        let line = line!();
        for _ in 0..30 {
            image = image.gauss(1.0) * 0.5;
        }
        image.to_vec().unwrap();
        line
    };
    let ((first, second), drawings, page) = drawn(Session::on(Box::new(cpu())), |session| {
        let first = program(session);
        let mut image = samples::worms(session, 30, 30);
        let line = line!();
        for _ in 0..30 {
            image = image.gauss(1.0) * 0.5;
        }
        image.to_vec().unwrap();
        (first, line)
    });
    let (recorded, computed) = halves(&drawings[0]);
    assert!(recorded.iter().any(|text| text.contains("30 operations")), "{recorded:?}");
    assert!(drawings[0].contains("class=\"back\""), "an edge leads back");
    assert!(recorded.len() < 20 && computed.len() < 60, "{recorded:?} {computed:?}");
    // The second program has the plan of the first, with other lines.
    assert_eq!(drawings.len(), 1);
    for line in [first, second] {
        assert!(page.as_ref().unwrap().contains(&format!("gauss, pages.rs:{}", line + 2)), "{line}");
    }
}

#[test]
fn transfers_are_drawn_with_their_bytes_and_reasons() {
    let all = ThreadComm::run(2, |comm| {
        let device = SimulatedDevice::new(cpu(), 1 << 26);
        let builder = Session::on(Box::new(device)).communicator(Arc::new(comm));
        drawn(builder.transfer(Transfer::Streams(NonZeroU8::new(1))), |session| {
            let image = samples::worms(session, 64, 64);
            let smooth = image.gauss(2.0).exp();
            (smooth.sum().get().unwrap(), smooth.gauss(1.0).to_vec().unwrap())
        })
    });
    assert!(all[1].2.is_none(), "rank 0 has the page");
    let (_, drawings, page) = &all[0];
    let computed: Vec<String> = drawings.iter().flat_map(|drawing| halves(drawing).1).collect();
    for word in ["exchange to depth ", "upload", "download"] {
        let found = computed.iter().position(|text| text.starts_with(word));
        let at = found.unwrap_or_else(|| panic!("{word}: {computed:?}"));
        assert!(computed[at].contains(" bytes") || computed[at].contains(" MB"), "{}", computed[at]);
        assert!(computed[at + 1].starts_with("  "), "a reason: {:?}", computed[at + 1]);
    }
    let page = page.as_ref().unwrap();
    assert!(computed.iter().any(|text| text.contains("pages.rs:") && text.starts_with("  ")), "{computed:?}");
    assert!(page.contains("rank 0: device memory") && page.contains(">rank 1: "), "{page}");
    // Several drawings are one file.
    let one = stack(drawings);
    assert_eq!(elements(&one).iter().filter(|element| element.name == "svg").count(), drawings.len() + 1);
}
