//! A partition as a picture.

use crate::{Blocks, Levels, Mask};

/// The colour of land blocks.
const LAND: [u8; 3] = [40, 40, 40];
/// The share of the part's colour that land keeps in computed blocks.
const SHORE: f64 = 0.45;

/// Returns three planes of bytes (red, green, blue) with the size of the mask. Each part of the
/// highest level has its own hues, and the parts below have shades of them. Land in computed blocks
/// is darker; other land is grey.
///
/// # Panics
/// If the number of parts is not the number of blocks, or the blocks are of another mask.
pub fn paint(mask: &Mask, blocks: &Blocks, levels: &Levels, parts: &[usize]) -> [Vec<u8>; 3] {
    assert_eq!(parts.len(), blocks.len(), "a part for each block");
    let mut planes = [0; 3].map(|_: u8| Vec::with_capacity(mask.width() * mask.height()));
    let (wide, high) = blocks.block();
    let colours: Vec<[u8; 3]> = (0..levels.parts()).map(|part| colour(part, levels)).collect();
    for y in 0..mask.height() {
        for x in 0..mask.width() {
            let pixel = blocks.at(x / wide, y / high).map_or(LAND, |block| {
                let colour = colours[parts[block]];
                if mask.is_sea(x, y) { colour } else { colour.map(|c| (f64::from(c) * SHORE) as u8) }
            });
            planes.iter_mut().zip(pixel).for_each(|(plane, value)| plane.push(value));
        }
    }
    planes
}

/// The colour of a part of the last level.
fn colour(part: usize, levels: &Levels) -> [u8; 3] {
    let groups = levels.parts_at(0);
    let inside = levels.group(0);
    let (group, nuance) = (part / inside, part % inside);
    // Steps of the golden ratio give distant shades to consecutive numbers.
    let golden = |n: usize, step: f64| (n as f64 * step).fract();
    let hue = (group as f64 + 0.6 * golden(nuance, 0.618_033_988_7)) / groups as f64;
    let value = 0.55 + 0.45 * golden(nuance, 0.754_877_666_2);
    let channel = |shift: f64| {
        let t = (hue + shift).fract() * 6.0;
        let full = ((t - 3.0).abs() - 1.0).clamp(0.0, 1.0);
        (255.0 * value * (0.25 + 0.75 * full)).round() as u8
    };
    [channel(0.0), channel(2.0 / 3.0), channel(1.0 / 3.0)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seams;

    #[test]
    fn every_point_has_the_colour_of_its_part() {
        let mask = Mask::drawn(&[".#..##", "....##"]).unwrap();
        let blocks = Blocks::new(&mask, (2, 2), 1, Seams::default()).unwrap();
        let levels: Levels = "2".parse().unwrap();
        let planes = paint(&mask, &blocks, &levels, &[0, 1]);
        let at = |x: usize, y: usize| [0, 1, 2].map(|c| planes[c][y * 6 + x]);
        assert_eq!((at(0, 0), at(3, 1), at(5, 0)), (colour(0, &levels), colour(1, &levels), LAND));
        assert_ne!(at(0, 0), at(2, 0));
        assert_eq!(at(1, 0), colour(0, &levels).map(|c| (f64::from(c) * SHORE) as u8));
    }

    #[test]
    fn parts_can_be_told_apart() {
        let levels: Levels = "2:16:8".parse().unwrap();
        let mut all: Vec<[u8; 3]> = (0..256).map(|part| colour(part, &levels)).collect();
        all.sort_unstable();
        all.dedup();
        assert!(all.len() > 250, "{}", all.len());
    }
}
