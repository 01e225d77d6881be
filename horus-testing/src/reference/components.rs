//! Connected components, by a search around each pixel of a component.

use super::kernel::HostImage;
use super::{OperationDefinition, ReferenceImage};
use horus_base::dtype::DType;
use horus_base::shape::{Shape, Window};
use horus_host::device::Geometry;
use horus_plan::ops::Components;
use horus_plan::ops::components::Connectivity;

impl OperationDefinition for Components {
    fn of_images(&self, inputs: &[&ReferenceImage], (_shape, _dtype): (Shape, DType)) -> ReferenceImage {
        let how = &self.neighbours;
        let Shape { depth, height, width, .. } = inputs[0].shape;
        let there: Vec<bool> = inputs[0].numbers().into_iter().map(|v| v != 0.0).collect();
        ReferenceImage::new(inputs[0].shape, components(&there, [depth, height, width], *how))
    }

    fn of_launch(&self, inputs: &[HostImage], output: &mut HostImage, out: Geometry, _rows: Window) {
        let how = &self.neighbours;
        let Shape { depth, height, width, .. } = out.shape;
        let pixel = |i: usize| (i / width / height, (i / width % height).cast_signed(), i % width);
        let pixels = (0..out.shape.len()).map(pixel);
        let there: Vec<bool> = pixels.map(|(z, y, x)| inputs[0].number(z, y, x) != 0.0).collect();
        for (i, label) in components(&there, [depth, height, width], *how).into_iter().enumerate() {
            let (z, y, x) = pixel(i);
            output.put(z, y, x, label);
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
