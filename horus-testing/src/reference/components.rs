//! Connected components, by a search around each pixel of a component.

use std::collections::HashMap;

use super::kernel::HostImage;
use super::{OperationDefinition, ReferenceImage};
use horus_base::dtype::DType;
use horus_base::shape::{Shape, Window};
use horus_host::device::Geometry;
use horus_plan::ops::Components;
use horus_plan::ops::components::{ComponentValue, Connectivity};

impl OperationDefinition for Components {
    fn of_images(&self, inputs: &[&ReferenceImage], (_shape, _dtype): (Shape, DType)) -> ReferenceImage {
        let Shape { depth, height, width, .. } = inputs[0].shape;
        let there: Vec<bool> = inputs[0].numbers().into_iter().map(|v| v != 0.0).collect();
        ReferenceImage::new(inputs[0].shape, values(self, &there, [depth, height, width]))
    }

    fn of_launch(&self, inputs: &[HostImage], output: &mut HostImage, out: Geometry, _rows: Window) {
        let Shape { depth, height, width, .. } = out.shape;
        let pixel = |i: usize| (i / width / height, (i / width % height).cast_signed(), i % width);
        let pixels = (0..out.shape.len()).map(pixel);
        let there: Vec<bool> = pixels.map(|(z, y, x)| inputs[0].number(z, y, x) != 0.0).collect();
        for (i, value) in values(self, &there, [depth, height, width]).into_iter().enumerate() {
            let (z, y, x) = pixel(i);
            output.put(z, y, x, value);
        }
    }
}

/// The values of an image of `[depth, height, width]` pixels with foreground `there`.
fn values(of: &Components, there: &[bool], extent: [usize; 3]) -> Vec<i32> {
    let labels = components(there, extent, of.neighbours);
    match of.value {
        ComponentValue::Label => labels,
        ComponentValue::Size => {
            let mut sizes: HashMap<i32, i32> = HashMap::new();
            labels.iter().filter(|label| **label != 0).for_each(|label| *sizes.entry(*label).or_default() += 1);
            labels.iter().map(|label| sizes.get(label).copied().unwrap_or(0)).collect()
        }
    }
}

/// The labels of an image of `[depth, height, width]` pixels with foreground `there`, by definition.
pub fn components(there: &[bool], extent: [usize; 3], how: Connectivity) -> Vec<i32> {
    let [_, height, width] = extent;
    let mut labels = vec![0; there.len()];
    let mut count = 0;
    for (first, _) in there.iter().enumerate().filter(|(_, there)| **there) {
        if labels[first] != 0 {
            continue;
        }
        count += 1;
        labels[first] = count;
        let mut found = vec![first];
        while let Some(i) = found.pop() {
            let at = [i / width / height, i / width % height, i % width];
            for by in how.neighbours() {
                let [z, y, x] = [0, 1, 2].map(|axis| at[axis].checked_add_signed(by[axis]));
                let (Some(z), Some(y), Some(x)) = (z, y, x) else { continue };
                let inside = z < extent[0] && y < height && x < width;
                let j = (z * height + y) * width + x;
                if inside && there[j] && labels[j] == 0 {
                    labels[j] = count;
                    found.push(j);
                }
            }
        }
    }
    labels
}
