//! A drawing of a program as recorded, and of the launches and transfers that it became, as SVG. Operations of one call
//! of the user are one box, also those of a loop: the drawing is as large as the program's text.

mod layout;

use std::collections::{BTreeSet, HashMap};
use std::fmt::{self, Write};

use self::layout::{Layout, layout};
use super::finished::Plan;
use super::follow::Follower;
use super::named::word;
use super::step::Action;
use super::text::size;
use crate::ir::graph::{Graph, NodeId, Op};
use crate::ops::Whole;
use horus_base::error::RecordedCall;

/// Maximum number of boxes on each side.
const MOST: usize = 400;
/// Width of a character, and height of a line.
const CHARACTER: f64 = 6.7;
const LINE: f64 = 15.0;
/// Space around the text of a box, and around both parts.
const PAD: f64 = 7.0;
const MARGIN: f64 = 14.0;
/// Space between both parts, and above them.
const BETWEEN: f64 = 60.0;
const HEAD: f64 = 34.0;
/// Maximum number of characters of a line of a reason, and of any line.
const REASON: usize = 44;
const LONGEST: usize = 72;
/// Fill and outline of the launches, in turn.
const COLOURS: [[&str; 2]; 8] = [
    ["#dbe8f6", "#4878a8"],
    ["#fbe5cf", "#c0701c"],
    ["#dff0dc", "#4a8a4a"],
    ["#eadff3", "#7d52a0"],
    ["#fbdedd", "#b54a47"],
    ["#e9e2d8", "#86694a"],
    ["#d9f0f0", "#2f8585"],
    ["#f6f0c4", "#8f8414"],
];

/// Text escaped for HTML and XML.
#[derive(Clone, Copy, Debug)]
pub struct Escaped<'a>(pub &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            '&' => f.write_str("&amp;"),
            '<' => f.write_str("&lt;"),
            '>' => f.write_str("&gt;"),
            '"' => f.write_str("&quot;"),
            // XML has no other control characters.
            '\n' | '\t' => f.write_char(' '),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => f.write_char('\u{fffd}'),
            c => f.write_char(c),
        })
    }
}

/// A box of a drawing.
#[derive(Default)]
struct DrawnBox {
    /// The style: `image`, `call`, `launch` or `move`.
    class: &'static str,
    title: String,
    /// Lines below the title.
    lines: Vec<String>,
    /// Calls inside a launch.
    inside: Vec<String>,
    /// Text that is shown on request.
    hint: String,
    /// The colour of this launch.
    colour: Option<usize>,
}

impl DrawnBox {
    fn texts(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.title).chain(&self.inside).chain(&self.lines)
    }

    fn size(&self) -> [f64; 2] {
        let widest = self.texts().map(|text| columns(text)).max().unwrap_or(0);
        let inside = if self.inside.is_empty() { 0.0 } else { 2.0 * PAD };
        let inner = self.inside.len() as f64 * (LINE + 5.0);
        [widest as f64 * CHARACTER + 2.0 * PAD + inside, (1 + self.lines.len()) as f64 * LINE + inner + 2.0 * PAD - 3.0]
    }
}

/// Columns of a text in a font of fixed width.
fn columns(text: &str) -> usize {
    text.chars().map(|c| 1 + usize::from(c >= '\u{1100}')).sum()
}

/// A text of at most [`LONGEST`] characters.
fn short(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// Boxes and the edges between them.
#[derive(Default)]
struct Part {
    boxes: Vec<DrawnBox>,
    edges: Vec<[usize; 2]>,
}

impl Part {
    fn connect(&mut self, from: usize, to: usize) {
        if !self.edges.contains(&[from, to]) {
            self.edges.push([from, to]);
        }
    }
}

/// Recorded operations by call.
struct Calls {
    /// By box of the recorded program: its call.
    of: Vec<(RecordedCall, bool)>,
    /// By number of the record.
    boxes: HashMap<u64, usize>,
}

impl Calls {
    /// The box of a call, which is new the first time. Images that exist have boxes of their own.
    fn at(&mut self, call: RecordedCall, is_image: bool) -> usize {
        let is_same = |(known, image): &(RecordedCall, bool)| {
            // A line of another language may call Rust more than once.
            let at = known.line == call.line && (call.line.is_some() || std::ptr::eq(known.site, call.site));
            at && known.name() == call.name() && *image == is_image
        };
        let at = self.of.iter().position(is_same).unwrap_or_else(|| {
            self.of.push((call, is_image));
            self.of.len() - 1
        });
        *self.boxes.entry(call.record).or_insert(at)
    }
}

/// A drawing of a program and of its plan: a complete SVG file.
///
/// Each launch has a number and a colour. Boxes of the program have the colour of the launch that computes them.
pub fn draw(program: &Graph<Op>, plan: &Plan) -> String {
    let mut calls = Calls { of: Vec::new(), boxes: HashMap::new() };
    let (mut recorded, is_equal) = recorded(program, &mut calls);
    let computed = computed(plan, &calls);
    for (i, drawn) in recorded.boxes.iter_mut().enumerate().filter(|(_, drawn)| drawn.class == "call") {
        let launches = &computed.launches_of[i];
        drawn.colour = launches.first().copied();
        let names: Vec<String> = launches.iter().map(|launch| (launch + 1).to_string()).collect();
        drawn.lines.push(match names.as_slice() {
            [] if is_equal[i] => "equal to an earlier call".into(),
            [] => "computed by no launch".into(),
            [one] => format!("in launch {one}"),
            several => short(&format!("in launches {}", several.join(", "))),
        });
    }
    let parts = [("As recorded", &recorded), ("As computed", &computed.part)];
    if let Some((_, part)) = parts.iter().find(|(_, part)| part.boxes.len() > MOST) {
        let told = format!("{} boxes; at most {MOST} are drawn", part.boxes.len());
        return document([columns(&told) as f64 * CHARACTER + 2.0 * MARGIN, HEAD], &{
            let mut text = String::new();
            write_text(&mut text, [MARGIN, 21.0], "", &told);
            text
        });
    }
    let placed = parts.map(|(title, part)| {
        let sizes: Vec<[f64; 2]> = part.boxes.iter().map(DrawnBox::size).collect();
        (title, part, layout(&sizes, &part.edges))
    });
    let mut body = String::new();
    let (mut x, mut height) = (MARGIN, 0.0_f64);
    for (title, part, places) in &placed {
        write_text(&mut body, [x, 21.0], "h", title);
        let _ = writeln!(body, "<g transform=\"translate({x:.1} {HEAD})\">");
        write_part(&mut body, part, places);
        body += "</g>\n";
        x += places.size[0].max(columns(title) as f64 * 8.5) + BETWEEN;
        height = height.max(places.size[1]);
    }
    document([x - BETWEEN + MARGIN, HEAD + height + MARGIN], &body)
}

/// The program as recorded: a box for each call, and `true` for those all of whose operations are equal to earlier ones.
fn recorded(program: &Graph<Op>, calls: &mut Calls) -> (Part, Vec<bool>) {
    let mut part = Part::default();
    let (mut equal, mut first_of) = (HashMap::new(), Vec::with_capacity(program.nodes.len()));
    let mut is_equal: Vec<bool> = Vec::new();
    let mut counts: Vec<(BTreeSet<u64>, bool)> = Vec::new();
    let mut of_node: Vec<usize> = Vec::with_capacity(program.nodes.len());
    for (id, node) in program.iter() {
        let is_order = matches!(node.op, Op::Whole(Whole::Interleave(_) | Whole::Deinterleave(_)));
        // Pixels in another order belong to their image.
        let at = match (is_order, node.inputs.first()) {
            (true, Some(input)) => of_node[input.0],
            _ => calls.at(node.site, matches!(node.op, Op::Source(_))),
        };
        of_node.push(at);
        if at == part.boxes.len() {
            let class = if matches!(node.op, Op::Source(_)) { "image" } else { "call" };
            let title = short(&node.site.title());
            part.boxes.push(DrawnBox { class, title, hint: node.site.to_string(), ..DrawnBox::default() });
            counts.push(Default::default());
            is_equal.push(true);
        }
        let inputs: Vec<usize> = node.inputs.iter().map(|input| first_of[input.0]).collect();
        let first = *equal.entry((&node.op, inputs, node.shape, node.dtype)).or_insert(id.0);
        first_of.push(first);
        is_equal[at] &= first != id.0;
        if !is_order {
            part.boxes[at].lines = vec![format!("{} {}", node.shape, node.dtype)];
            counts[at].0.insert(node.site.record);
        }
        counts[at].1 |= program.roots.contains(&id);
        for input in node.inputs.iter().map(|input| of_node[input.0]).filter(|input| *input != at) {
            part.connect(input, at);
        }
    }
    for (drawn, (records, is_result)) in part.boxes.iter_mut().zip(counts) {
        let mut about = std::mem::take(&mut drawn.lines).concat();
        if records.len() > 1 {
            let what = if drawn.class == "image" { "images" } else { "operations" };
            let _ = write!(about, ", {} {what}", records.len());
        }
        if is_result {
            about += ", result";
        }
        drawn.lines = vec![about];
    }
    (part, is_equal)
}

/// The launches of a plan, and the transfers between them.
struct Computed {
    part: Part,
    /// By box of the recorded program: the launches that compute it.
    launches_of: Vec<Vec<usize>>,
}

/// The same launch: the boxes of its calls, what it computes, and the name of its kernel.
type LaunchKey = (BTreeSet<usize>, String, String);

fn computed(plan: &Plan, calls: &Calls) -> Computed {
    let (graph, launches) = (&plan.graph, plan.launches());
    let mut part = Part::default();
    let mut launches_of: Vec<Vec<usize>> = vec![Vec::new(); calls.of.len()];
    let mut known: HashMap<LaunchKey, (usize, usize)> = HashMap::new();
    let mut counts: Vec<usize> = Vec::new();
    let mut of_node: Vec<Option<usize>> = vec![None; graph.nodes.len()];
    let mut images: HashMap<String, usize> = HashMap::new();
    let mut image = |part: &mut Part, of_node: &mut Vec<Option<usize>>, id: NodeId| {
        let node = graph.node(id);
        let title = short(&node.site.title());
        let at = *images.entry(title.clone()).or_insert_with(|| {
            let (lines, hint) = (vec![plan.image(id)], node.site.to_string());
            part.boxes.push(DrawnBox { class: "image", title, lines, hint, ..DrawnBox::default() });
            part.boxes.len() - 1
        });
        of_node[id.0] = Some(at);
        at
    };
    let mut reads: Vec<(NodeId, usize)> = Vec::new();
    for (i, step) in plan.steps.iter().enumerate() {
        let (Some(launch), Action::Launch { part: rows, .. }) = (launches.at(i), step.action) else { continue };
        if !rows.begins() {
            continue;
        }
        let mut held: Vec<RecordedCall> = Vec::new();
        for call in launch.nodes.iter().flat_map(|node| plan.calls(*node)) {
            if !held.iter().any(|known| known.record == call.record) {
                held.push(*call);
            }
        }
        held.sort_by_key(|call| call.record);
        let boxes: BTreeSet<usize> = held.iter().filter_map(|call| calls.boxes.get(&call.record).copied()).collect();
        let name = launch.kernel.name();
        let key = (boxes, plan.image(launch.nodes[0]), name.clone());
        let at = match known.get(&key) {
            Some(&(at, number)) => {
                counts[number] += 1;
                at
            }
            None => {
                let number = counts.len();
                counts.push(1);
                key.0.iter().for_each(|call| launches_of[*call].push(number));
                let reorders = |node: &NodeId| graph.calls.get(node.0).is_some_and(Vec::is_empty);
                let inside = match launch.nodes.iter().all(reorders) {
                    true => vec![short(&format!("{name} of {}", held[0].title()))],
                    false => counted(&held),
                };
                let lines = vec![key.1.clone()];
                let (class, colour) = ("launch", Some(number));
                part.boxes.push(DrawnBox { class, lines, inside, colour, hint: name, ..DrawnBox::default() });
                known.insert(key, (part.boxes.len() - 1, number));
                part.boxes.len() - 1
            }
        };
        launch.nodes.iter().for_each(|node| of_node[node.0] = Some(at));
        reads.extend(launch.inputs.iter().map(|input| (*input, at)));
    }
    for drawn in part.boxes.iter_mut() {
        if let Some(number) = drawn.colour {
            let times = if counts[number] > 1 { format!(", {} times", counts[number]) } else { String::new() };
            drawn.title = format!("launch {}{times}", number + 1);
        }
    }
    for (input, _) in &reads {
        if graph.node(*input).op.source_value().is_some() {
            image(&mut part, &mut of_node, *input);
        }
    }
    let (to_readers, to_program) = moves(plan);
    // By box: the text on its way to its readers, and to the program.
    for moved in [&to_readers, &to_program] {
        for id in moved.keys() {
            if of_node[id.0].is_none() && graph.node(*id).op.source_value().is_some() {
                image(&mut part, &mut of_node, *id);
            }
        }
    }
    let label = |part: &mut Part, from: usize, moved: &HashMap<NodeId, Vec<Move>>| {
        let mut all: Vec<Move> = Vec::new();
        let mut ids: Vec<NodeId> = moved.keys().copied().filter(|id| of_node[id.0] == Some(from)).collect();
        ids.sort_unstable();
        for one in ids.iter().flat_map(|id| &moved[id]) {
            one.add_to(&mut all);
        }
        (!all.is_empty()).then(|| {
            let lines: Vec<String> = all.iter().flat_map(Move::lines).collect();
            let (title, lines) = (lines[0].clone(), lines[1..].to_vec());
            part.boxes.push(DrawnBox { class: "move", title, lines, ..DrawnBox::default() });
            let at = part.boxes.len() - 1;
            part.connect(from, at);
            at
        })
    };
    for from in 0..part.boxes.len() {
        let on_the_way = label(&mut part, from, &to_readers);
        for (_, reader) in reads.iter().filter(|(input, _)| of_node[input.0] == Some(from)) {
            part.connect(on_the_way.unwrap_or(from), *reader);
        }
        label(&mut part, from, &to_program);
    }
    Computed { part, launches_of }
}

/// The titles of calls, equal ones together.
fn counted(calls: &[RecordedCall]) -> Vec<String> {
    let mut titles: Vec<(String, usize)> = Vec::new();
    for title in calls.iter().map(|call| short(&call.title())) {
        match titles.iter_mut().find(|(known, _)| *known == title) {
            Some((_, count)) => *count += 1,
            None => titles.push((title, 1)),
        }
    }
    titles.into_iter().map(|(title, n)| if n > 1 { format!("{n}x {title}") } else { title }).collect()
}

/// Transfers of one kind and reason.
#[derive(Clone)]
struct Move {
    word: String,
    why: String,
    bytes: usize,
    times: usize,
}

impl Move {
    /// Adds the transfers to those of the same kind and reason.
    fn add_to(&self, all: &mut Vec<Move>) {
        match all.iter_mut().find(|known| known.word == self.word && known.why == self.why) {
            Some(known) => {
                known.bytes += self.bytes;
                known.times += self.times;
            }
            None => all.push(self.clone()),
        }
    }

    fn lines(&self) -> Vec<String> {
        let Move { word, why, bytes, times } = self;
        let bytes = if *bytes > 0 { format!(", {}", size(*bytes)) } else { String::new() };
        let times = if *times > 1 { format!(" in {times} steps") } else { String::new() };
        let mut lines = vec![format!("{word}{bytes}{times}")];
        let mut line = String::new();
        for word in why.split_whitespace() {
            if !line.is_empty() && columns(&line) + columns(word) >= REASON {
                lines.push(format!("  {}", std::mem::take(&mut line)));
            }
            let space = if line.is_empty() { "" } else { " " };
            let _ = write!(line, "{space}{}", short(word));
        }
        lines.extend((!line.is_empty()).then(|| format!("  {line}")));
        lines
    }
}

/// The transfers of each image: those that its readers need, and those that return it to the program.
fn moves(plan: &Plan) -> (HashMap<NodeId, Vec<Move>>, HashMap<NodeId, Vec<Move>>) {
    let mut follower = Follower::new(plan, 0, true);
    let (mut to_readers, mut to_program) = (HashMap::new(), HashMap::new());
    for step in &plan.steps {
        let bytes = follower.step(step.action).unwrap_or_default();
        let (word, is_transfer) = word(&step.action);
        if !is_transfer {
            continue;
        }
        // Bands of one image are one transfer.
        let word = word.split(", rows").next().unwrap_or_default().to_owned();
        let to = match step.action {
            Action::Download(_)
            | Action::Unmap(_)
            | Action::Gather { .. }
            | Action::Collect(_)
            | Action::Send { .. }
            | Action::Deliver(_) => &mut to_program,
            _ => &mut to_readers,
        };
        let one = Move { word, why: plan.name_images(&step.why), bytes, times: 1 };
        one.add_to(to.entry(step.action.node()).or_default());
    }
    (to_readers, to_program)
}

/// Several drawings, one below the other, as one SVG file.
pub fn stack(drawings: &[String]) -> String {
    let number = |drawing: &str, name: &str| -> f64 {
        let value = drawing.split_once(name).and_then(|(_, rest)| rest.split('"').next());
        value.and_then(|value| value.parse().ok()).unwrap_or_default()
    };
    let ([mut width, mut height], mut body) = ([0.0_f64, 0.0], String::new());
    for drawing in drawings {
        body += &drawing.replacen("<svg ", &format!("<svg y=\"{height:.0}\" "), 1);
        width = width.max(number(drawing, " width=\""));
        height += number(drawing, " height=\"");
    }
    match drawings {
        [one] => one.clone(),
        _ => format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\">\n{body}</svg>\n"
        ),
    }
}

fn document(size: [f64; 2], body: &str) -> String {
    let [width, height] = size;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"program\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\">\n<style>\n\
         .program text {{ font: 11px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; fill: #222; }}\n\
         .program .h {{ font: bold 14px sans-serif; }} .program .b {{ font-weight: bold; }}\n\
         .program .s {{ fill: #555; }} .program .m {{ fill: #9a4a00; }}\n\
         .program rect {{ fill: #fff; stroke: #777; }} .program .inner {{ stroke: #aaa; }}\n\
         .program .image {{ fill: #f2f2f2; }} .program .move {{ fill: none; stroke: none; }}\n\
         .program path {{ fill: none; stroke: #888; stroke-width: 1.2; }} .program .back {{ stroke-dasharray: 5 3; }}\n\
         .program .tip {{ fill: #888; stroke: none; }}\n\
         </style>\n<rect width=\"100%\" height=\"100%\" style=\"stroke:none\"/>\n{body}</svg>\n"
    )
}

fn write_text(out: &mut String, [x, y]: [f64; 2], class: &str, text: &str) {
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    let _ = writeln!(out, "<text{class} x=\"{x:.1}\" y=\"{y:.1}\" xml:space=\"preserve\">{}</text>", Escaped(text));
}

/// Draws boxes and edges.
fn write_part(out: &mut String, part: &Part, places: &Layout) {
    for (line, is_back) in places.lines.iter().zip(&places.leads_back) {
        let Some(([x, y], rest)) = line.split_first() else { continue };
        let mut path = format!("M{x:.1} {y:.1}");
        let [mut before_x, mut before_y] = [*x, *y];
        for [x, y] in rest {
            let middle = f64::midpoint(before_y, *y);
            let _ = if *x == before_x {
                write!(path, "V{y:.1}")
            } else {
                write!(path, "C{before_x:.1} {middle:.1} {x:.1} {middle:.1} {x:.1} {y:.1}")
            };
            [before_x, before_y] = [*x, *y];
        }
        let _ = writeln!(out, "<path{} d=\"{path}\"/>", if *is_back { " class=\"back\"" } else { "" });
        let up = if *is_back { 6.0 } else { -6.0 };
        let _ = writeln!(out, "<path class=\"tip\" d=\"M{before_x:.1} {before_y:.1}l-3.5 {up}h7z\"/>");
    }
    for (drawn, [x, y]) in part.boxes.iter().zip(&places.at) {
        let [width, height] = drawn.size();
        let [fill, stroke] = drawn.colour.map_or(["", ""], |colour| COLOURS[colour % COLOURS.len()]);
        let style = if fill.is_empty() { String::new() } else { format!(" style=\"fill:{fill};stroke:{stroke}\"") };
        let round = if drawn.class == "image" { height.min(24.0) / 2.0 } else { 3.0 };
        out.push_str("<g>");
        if !drawn.hint.is_empty() {
            let _ = write!(out, "<title>{}</title>", Escaped(&drawn.hint));
        }
        let _ = writeln!(
            out,
            "<rect class=\"{}\"{style} x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
             height=\"{height:.1}\" rx=\"{round}\"/>",
            drawn.class
        );
        let mut line = y + PAD + 9.0;
        let is_move = drawn.class == "move";
        write_text(out, [x + PAD, line], if is_move { "m" } else { "b" }, &drawn.title);
        for text in &drawn.inside {
            let _ = writeln!(
                out,
                "<rect class=\"inner\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"2\"/>",
                x + PAD,
                line + 5.0,
                width - 2.0 * PAD,
                LINE + 1.0
            );
            line += LINE + 5.0;
            write_text(out, [x + 2.0 * PAD, line - 3.0], "", text);
        }
        for text in &drawn.lines {
            line += LINE;
            let class = if is_move && !text.starts_with(' ') { "m" } else { "s" };
            write_text(out, [x + PAD, line], class, text);
        }
        out.push_str("</g>\n");
    }
}
