//! Descriptions of operations: names here and in other libraries, parameters, help.
//!
//! Each module of operations describes its own by `describe!`; a composition has a description next to its function.
//! The command, its help, completions and manual, and the page of operations are made from these descriptions.

/// The description of an operation.
#[derive(Clone, Copy, Debug)]
pub struct Description {
    /// Its name in the command and, unless [`method`](Self::method) says otherwise, in the library.
    pub name: &'static str,
    /// Further names in the command.
    pub aliases: &'static [&'static str],
    /// The method or function of the library; empty for an operation of the command only.
    pub method: &'static str,
    /// Its place in lists.
    pub group: OperationGroup,
    /// Its kind for planner and devices.
    pub pattern: Pattern,
    /// Its parameters in the command.
    pub parameters: &'static [Parameter],
    /// One line.
    pub summary: &'static str,
    /// Formula, conventions and source, if a line does not suffice.
    pub details: &'static str,
    /// Names in other libraries, with a prefix: `np.` NumPy, `ndi.` `scipy.ndimage`, `ski.` scikit-image, `cv.` OpenCV,
    /// `imageproc::` and `image::` the crates of Rust.
    pub elsewhere: &'static [&'static str],
    /// Differences from the operations in other libraries.
    pub differs: &'static str,
    /// An example: a chain of the command. Empty for an operation of the library only.
    pub example: &'static str,
}

/// A group of related operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationGroup {
    /// Types, scales, channels, colour.
    Types,
    /// Arithmetic.
    Arithmetic,
    /// Thresholds and masks.
    Thresholds,
    /// Filters.
    Filters,
    /// Morphology.
    Morphology,
    /// Geometric transformations.
    Geometry,
    /// Line detectors.
    Detectors,
    /// Statistics that are images.
    Statistics,
    /// Numbers.
    Numbers,
}

impl OperationGroup {
    /// All groups, in the order of lists.
    pub const ALL: [OperationGroup; 9] = [
        OperationGroup::Types,
        OperationGroup::Arithmetic,
        OperationGroup::Thresholds,
        OperationGroup::Filters,
        OperationGroup::Morphology,
        OperationGroup::Geometry,
        OperationGroup::Detectors,
        OperationGroup::Statistics,
        OperationGroup::Numbers,
    ];

    /// A heading.
    pub const fn title(self) -> &'static str {
        match self {
            OperationGroup::Types => "Types, scales, channels, colour",
            OperationGroup::Arithmetic => "Arithmetic, `a` being the picture",
            OperationGroup::Thresholds => "Thresholds and masks",
            OperationGroup::Filters => "Filters",
            OperationGroup::Morphology => "Morphology, of pictures and masks",
            OperationGroup::Geometry => "Geometry",
            OperationGroup::Detectors => "Detectors",
            OperationGroup::Statistics => "Statistics along axes and of tiles",
            OperationGroup::Numbers => "Numbers, which end a chain and are printed",
        }
    }
}

/// The kind of an operation for planner and devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Each pixel is computed from the pixels at its position.
    Pixel,
    /// Each pixel is computed from the pixels around it.
    Neighbourhood,
    /// Pixels are combined with weights and reduced: `sum` of `mul` is a linear filter.
    GeneralizedConvolution,
    /// Each pixel comes from another position.
    Geometric,
    /// Fewer pixels, or a number, are computed from many pixels.
    Reduction,
    /// Each pixel depends on the whole image.
    WholeImage,
    /// Several of these, one after another.
    Composition,
}

impl Pattern {
    /// The name in plain words.
    pub const fn name(self) -> &'static str {
        match self {
            Pattern::Pixel => "pixel",
            Pattern::Neighbourhood => "neighbourhood",
            Pattern::GeneralizedConvolution => "generalized convolution",
            Pattern::Geometric => "geometric",
            Pattern::Reduction => "reduction",
            Pattern::WholeImage => "whole image",
            Pattern::Composition => "composition",
        }
    }
}

/// A parameter of an operation.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// What it accepts.
    pub kind: Accepts,
    /// The default, as a word of the command.
    pub default: Option<&'static str>,
    /// Description, if name and kind do not say all.
    pub help: &'static str,
}

/// A parameter without a default.
pub const fn required(name: &'static str, kind: Accepts, help: &'static str) -> Parameter {
    Parameter { name, kind, default: None, help }
}

/// A parameter with a default.
pub const fn optional(name: &'static str, kind: Accepts, default: &'static str, help: &'static str) -> Parameter {
    Parameter { name, kind, default: Some(default), help }
}

/// The border mode of a filter.
pub const BORDER: Parameter = optional("border", Accepts::Border, "reflect101", "border mode");

/// Kinds of arguments.
#[derive(Clone, Copy, Debug)]
pub enum Accepts {
    /// A number.
    Number,
    /// A number of pixels, or a length with a unit.
    Length,
    /// A non-negative integer.
    Count,
    /// An integer.
    Offset,
    /// A number of pixels, a percentage of the present height or width, or `auto` to follow the other one.
    Extent,
    /// A number, or `auto` for the limit of the pixel type.
    Limit,
    /// Numbers, separated by commas.
    Numbers,
    /// A number, a number for each channel, or a picture.
    Operand,
    /// A picture.
    File,
    /// One of several words.
    Choice(fn() -> Vec<&'static str>),
    /// A border mode.
    Border,
    /// A footprint; one to three words.
    Footprint,
    /// The taps of a filter.
    Taps,
}

/// Describes an operation. The method has the same name unless [`Description::called`] or [`Description::only_command`]
/// follows.
pub const fn description(
    name: &'static str,
    group: OperationGroup,
    pattern: Pattern,
    summary: &'static str,
) -> Description {
    Description {
        name,
        aliases: &[],
        method: name,
        group,
        pattern,
        parameters: &[],
        summary,
        details: "",
        elsewhere: &[],
        differs: "",
        example: "",
    }
}

impl Description {
    /// Adds further names in the command.
    pub const fn also(self, aliases: &'static [&'static str]) -> Description {
        Description { aliases, ..self }
    }

    /// Sets another name of the method or function.
    pub const fn called(self, method: &'static str) -> Description {
        Description { method, ..self }
    }

    /// Marks an operation without a method: the command composes it.
    pub const fn only_command(self) -> Description {
        Description { method: "", ..self }
    }

    /// Sets the parameters.
    pub const fn takes(self, parameters: &'static [Parameter]) -> Description {
        Description { parameters, ..self }
    }

    /// Sets [`Description::details`].
    pub const fn details(self, details: &'static str) -> Description {
        Description { details, ..self }
    }

    /// Sets the names in other libraries.
    pub const fn elsewhere(self, elsewhere: &'static [&'static str]) -> Description {
        Description { elsewhere, ..self }
    }

    /// Sets the differences from other libraries.
    pub const fn differs(self, differs: &'static str) -> Description {
        Description { differs, ..self }
    }

    /// Sets the example of the command.
    pub const fn example(self, example: &'static str) -> Description {
        Description { example, ..self }
    }

    /// The syntax: `gauss SIGMA [border=reflect101]`.
    pub fn signature(&self) -> String {
        let words = self.parameters.iter().map(|p| match p.default {
            None => format!(" {}", p.name.to_uppercase()),
            Some(default) => format!(" [{}={}]", p.name, default.replace(' ', ",")),
        });
        std::iter::once(self.name.to_owned()).chain(words).collect()
    }
}

/// Declares the descriptions of a module's operations, and the list of them.
macro_rules! describe {
    ($($NAME:ident = $description:expr;)*) => {
        $(
            /// The description of this operation.
            pub const $NAME: crate::ops::describe::Description = $description;
        )*

        /// The descriptions of the operations of this module.
        pub(super) const DESCRIBED: &[crate::ops::describe::Description] = &[$($NAME),*];
    };
}
pub(crate) use describe;
