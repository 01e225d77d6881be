//! Pages of the documentation that are generated from the operations' descriptions.

use std::fmt::Write as _;

use horus_core::ops::describe::{Description, OperationGroup};
use horus_core::ops::described;

use super::help::topics;
use super::table;

/// The generated pages: their paths in the repository, and their texts.
pub fn pages() -> [(&'static str, String); 2] {
    let topics: Vec<&str> = topics().collect();
    [("docs/command.md", format!("{COMMAND}\n{}\n{SERVER}", topics.join("\n"))), ("docs/operations.md", operations())]
}

/// The operations of the command and of the library.
fn operations() -> String {
    let command = || table::all().iter().map(|row| row.described);
    let ends = |row: &Description| row.group == OperationGroup::Numbers;
    let further = |row: &&Description| !command().any(|known| known.name == row.name && ends(known) == ends(row));
    let all: Vec<&Description> = command().chain(described().filter(further)).collect();
    let mut text = OPERATIONS.to_owned();
    for group in OperationGroup::ALL {
        let _ = write!(text, "\n## {}\n\n", group.title());
        text += "| operation | in Rust | what it does | in other libraries | what differs | in the command |\n";
        text += "| --- | --- | --- | --- | --- | --- |\n";
        for row in all.iter().filter(|row| row.group == group) {
            text += &line(row);
        }
    }
    text
}

/// A line of a table.
fn line(row: &Description) -> String {
    let code = |text: &str| if text.is_empty() { String::new() } else { format!("`{text}`") };
    let all = |names: &[&str]| names.iter().map(|name| code(name)).collect::<Vec<_>>().join(" ");
    let signature = row.signature();
    let names = [&[signature.as_str()], row.aliases].concat();
    // Some names contain backquotes already.
    let elsewhere: Vec<String> =
        row.elsewhere.iter().map(|name| if name.contains('`') { (*name).to_owned() } else { code(name) }).collect();
    let details = if row.details.is_empty() { String::new() } else { format!(". {}", row.details) };
    let cells = [
        all(&names),
        code(row.method),
        format!("{}{details}", row.summary),
        elsewhere.join(" "),
        row.differs.to_owned(),
        code(row.example),
    ];
    let cells = cells.map(|cell| format!("| {} ", cell.replace('|', "\\|")));
    format!("{}|\n", cells.concat())
}

const COMMAND: &str = "\
# The command `horus`

Image operations without a line of code: pictures, then operations with their arguments, in the order in which they are applied.

    horus picture.png edges.png luminance gauss 2 sobel
    horus in/*.tif --out-dir out gauss 2 sobel otsu
    horus picture.tif clean.tif sub @dark.tif median 3
    horus in/*.png luminance mean
    horus - - --format png rotate 30 < picture.png > turned.png

The whole chain is one program, optimised and run as one, on a GPU, the CPU, or many ranks under `mpirun`,
with the same bits. `horus --help` lists the options, which are those of the detectors; `horus help` the operations, `horus help gauss`
describes one, and `horus help types` a topic. [All operations](operations.md) lists them beside those of the library.

**Other commands.** `horus info FILE...` prints size, type, pages, tiles and smaller copies of files without reading their pixels, with `--tags` what TIFF and PNG files
say of themselves, with `--statistics` the range, mean and deviation of each channel. `horus compare A B` prints in how many samples pictures differ, by how much at
most and where, PSNR and SSIM, and ends with status 0 if they are equal, 1 if they differ (`--within D`: by more than D), 2 if they cannot be compared. Both print
JSON with `--json`. `horus montage OUTPUT PICTURE...` writes a picture of pictures, each resized to fit into a tile (`--columns`, `--tile`, `--gap`).
`horus profile INPUT OUTPUT OPERATION...` runs a chain and prints what bounds each of its kernels, also with `--json`: the page Tuning of the book explains it.
`horus --version` prints the features of the program and the devices that it finds; `horus completions bash` (or `zsh`, `fish`) prints a script
by which a shell completes operations and options, and `horus manual > horus.1` the page that `man ./horus.1` shows.

**A process that stays.** `horus serve SOCKET` opens a session once and runs commands in it, so that the second picture of a kind needs no start of a GPU, no compilation
and no plan. `horus --server SOCKET ...` sends it a command, whose words, output, errors and exit status are those of `horus ...`; [a server](#a-server) tells more.

**A part.** `--roi X,Y,WIDTH,HEIGHT` computes only these columns and rows of the result, with the pixels that the whole has there: a filter reads its
surroundings. Of TIFF, npy and Zarr files only what the part needs is read. Numbers are those of the part.

**Georeference.** A GeoTIFF that is saved as TIFF keeps its tags, and the value of missing pixels if it keeps its type: results of filters and pixel operations lie where the
picture lies, and crops, resized, mirrored and turned pictures where their pixels lay. Several pictures together keep the place if it is the same, and the value of missing pixels
of the first that has one. A place, a size of pixels or names of channels that pictures do not share, as a picture and its mirror image have no place in common, are dropped: a
warning for each file that is written gives the reason. Pixels of a TIFF file with a colour table are the indices of one channel; the table is kept in TIFF and PNG files while pixels are only cut out, mirrored, turned or
sampled (`resize 512 512 nearest`), not computed.

**Sizes.** `--sizes 5` writes a TIFF file as a cloud optimized GeoTIFF, or a Zarr store as a pyramid: each size is half as high and wide as the one before, rounded
up, and has a pixel for each block of two rows and two columns. `--resampling average` takes the mean of a block, of its pixels that are not missing, `mode` its most frequent value, and `nearest`
its first pixel. By default masks, images of 32-bit integers, as labels are, and indices of a colour table have modes, others averages. The sizes of `.ome.tif` belong to its pages. With
`--compression deflate` and `--tile 512`: `horus in.tif out.tif --sizes 5 --tile 512 --compression deflate`.

**Size of pixels.** Zarr stores, OME-TIFF and ImageJ files (`--volume` reads their levels and channels, `--page` a time), TIFF files with a resolution per centimetre and PNG files with one per metre give it,
results keep it, and stores, `.ome.tif`, `.tif` and `.png` have it again; other formats have none, which is told for each file. `gauss 2.5um` is a Gaussian of that width, also where
pixels are not square. Channels keep their names between stores and OME-TIFF files, which have a page for each.

**Arguments.** The first word that is the name of an operation begins the chain; the words before it are files. With `--out-dir`
all are pictures or folders of pictures, else the last is the file to write. A file that has the name of an operation is written
`./NAME`, `-` is stdin or stdout. Words after the name of an operation are its arguments, up to the next name. Arguments in brackets may
be left out, and each can be given by name: `gauss sigma=2 border=wrap`. A word that is the name of an operation, too, is an argument where the
operation before it takes it: `tiles 8 8 max` has the largest pixel of each tile. Without any operation a picture is written in another format.

";

const SERVER: &str = "\
## A server

    horus serve ~/.horus.sock --device cuda &
    horus --server ~/.horus.sock picture.png edges.png luminance gauss 2 sobel
    horus --server ~/.horus.sock - - --format png rotate 30 < picture.png > turned.png

**Requests** run one after the other, in the order in which they arrive. Names of files are relative to the directory of the client, `-` is its standard input or
output. Images of a request are dropped after it; the limits of memory (`HORUS_HOST_MEMORY`) are those of the server, as its whole environment is. `--threads`, `--mode`
and `--device` are given to `horus serve`; a request that asks for others fails. `-v`, `--explain`, `--trace` and `--report` make plans anew, on the open device. `--compare` and
`profile` open devices of their own, and are errors. `/dev/stdout` is the output of the client, other names of open files (`/dev/stdin`, `/dev/fd/3`) are those of the server.

**The socket** is a file that only its owner may use (mode 0600, from its first moment on); there is no other protection: who may connect may do what the user may. A socket
without a server is replaced; if a server listens there, the second one fails. SIGINT and SIGTERM cancel the request that runs, remove the socket and end the server with status 0; a second
signal ends it at once. `horus serve -v` prints a line about each request. A server is one process: under `mpirun` it is an error.

**Clients that fail** harm no others. A client that closes its connection cancels its request between two steps. A request must arrive within 10 seconds. Of a client that does not read,
64 MiB of output are kept; then it has 10 seconds, after which it is taken as gone. Standard input is read before the turn of a request. An error or a panic in a request ends this
request only. At most 256 clients are connected.

**The protocol.** Lengths are 32-bit integers, the most significant byte first.

1. The client sends the length of its request in bytes (at most 16 MiB), then the request: its working directory, and the words after `horus`, each ended by a zero byte.
2. The server sends frames: a byte for the kind, the length, and as many bytes. Kind 1 is standard output, 2 standard error. Kind 3 is the last frame, with the exit status in its
   one byte. A connection that ends without it has failed.
3. Kind 0 is empty, comes at most once, before all others, and asks for standard input. The client sends it in parts, each with its length before it; a part of length 0 is the end.
4. The client keeps its side of the connection open until the last frame.

A client in Python:

    import os, socket, struct, sys

    server = socket.socket(socket.AF_UNIX)
    server.connect(sys.argv[1])
    words = [os.getcwd(), *sys.argv[2:]]
    request = b\"\".join(os.fsencode(word) + b\"\\0\" for word in words)
    server.sendall(struct.pack(\">I\", len(request)) + request)
    answer = server.makefile(\"rb\")
    while True:
        kind, length = struct.unpack(\">BI\", answer.read(5))
        content = answer.read(length)
        if kind == 0:
            part = None
            while part != b\"\":
                part = sys.stdin.buffer.read(65536)
                server.sendall(struct.pack(\">I\", len(part)) + part)
        elif kind == 3:
            sys.exit(content[0])
        else:
            [sys.stdout, sys.stderr][kind - 1].buffer.write(content)
";

const OPERATIONS: &str = "\
# All operations

Each operation with its name and parameters in the command [`horus`](command.md), its method or function in the library, and its names in other libraries. `ndi` is
`scipy.ndimage`, `np` NumPy, `ski` scikit-image, `cv` OpenCV (5.0), `imageproc` (0.27) and `image` (0.25) the crates of these names. [Names](names.md) has what is no operation: files,
arrays, loops, and what differs everywhere.

Border modes: Reflect101 (default of filters), Reflect, Replicate, Wrap, Constant; what moves pixels leaves 0 outside. `with_border` chooses another for the
operation called next. Conventions to know: first derivatives are positive where the image rises, as scipy's; integer arithmetic saturates; linear filters of integer images
yield `f32`.

**Operands** are another image, a number, a reduction or a number for each channel; `+ - * /` and `& | ^ !` of masks are operators.

**Volumes.** A number for each axis (`gauss(2.0)`, `median(3)`, `erode(3)`, `step(2)`) goes across levels, a pair `(y, x)` stays in the plane, a triple is `(z, y, x)`;
footprints and filters go across levels where there is one for each; other operations in the plane go level by level, statistics `over` `Axis::Depth` across them.

**The same bits**: whatever the number of threads or ranks, the instruction set or the mode, results of all operations are
equal to the last bit, also within a tolerance (`within`); `exp`, `log`, `pow`, `sin`, `cos`, `atan2` and `hypot` included: they are Horus's own, within 1 ulp.

Each method's documentation has shapes, units, borders, errors and an example: `cargo doc --open -p horus-image`. `horus help` lists the operations of the command. This page
is made of the descriptions beside the operations (`horus-plan/src/ops`).
";
