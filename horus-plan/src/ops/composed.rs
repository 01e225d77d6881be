//! Descriptions of operations that `Image` composes of others, or of none (a conversion).

use super::components::NEIGHBOURS;
use super::describe::{Accepts, BORDER, OperationGroup, Parameter, Pattern, describe, description, optional, required};
use horus_base::dtype::DType;

const FOOTPRINT: Parameter = optional("footprint", Accepts::Footprint, "3", "");

fn types() -> Vec<&'static str> {
    DType::ALL.map(DType::name).to_vec()
}

describe! {
    CONVERT = description("convert", OperationGroup::Types, Pattern::Pixel, "Pixels of another type, rounded and saturated but not scaled; of a mask, 0 and 1")
        .takes(&[required("type", Accepts::Choice(types), "")])
        .elsewhere(&["np.astype", "cv.convertTo", "image::convert"])
        .differs("rounds to nearest even and saturates; NumPy truncates and wraps")
        .example("convert f32");
    TO_UNIT = description("to_unit", OperationGroup::Types, Pattern::Composition, "All channels as `f32` in which white is 1; of a mask, 0 and 1")
        .also(&["unit"])
        .elsewhere(&["ski.util.img_as_float", "cv.convertTo", "image::to_rgb32f"])
        .example("to_unit");
    LUMINANCE = description("luminance", OperationGroup::Types, Pattern::Composition, "One channel of `f32` in which white is 1, of colours 0.299 R + 0.587 G + 0.114 B, ignoring alpha")
        .also(&["grey", "gray"])
        .elsewhere(&["ski.color.rgb2gray", "cv.cvtColor(COLOR_RGB2GRAY)", "image::to_luma"])
        .differs("`f32`, of integers 0..=1; weights of BT.601 as OpenCV; the others take BT.709")
        .example("luminance");
    RGB_TO_HSV = description("rgb_to_hsv", OperationGroup::Types, Pattern::Composition, "Hue, saturation and value in 0..=1 of red, green and blue")
        .called("convert_colour")
        .elsewhere(&["ski.color.rgb2hsv", "cv.cvtColor(COLOR_RGB2HSV)"])
        .differs("hue in 0..=1; OpenCV: 0..360, of bytes 0..180")
        .example("to_unit rgb_to_hsv");
    HSV_TO_RGB = description("hsv_to_rgb", OperationGroup::Types, Pattern::Composition, "Red, green and blue of hue, saturation and value in 0..=1")
        .called("convert_colour")
        .elsewhere(&["ski.color.hsv2rgb", "cv.cvtColor(COLOR_HSV2RGB)"])
        .example("to_unit hsv_to_rgb");
    RGB_TO_LAB = description("rgb_to_lab", OperationGroup::Types, Pattern::Composition, "CIE L*a*b* (D65), L in 0..=100, of red, green and blue")
        .called("convert_colour")
        .elsewhere(&["ski.color.rgb2lab", "cv.cvtColor(COLOR_RGB2Lab)"])
        .differs("D65, L in 0..=100; OpenCV scales bytes to 0..255")
        .example("to_unit rgb_to_lab");
    LAB_TO_RGB = description("lab_to_rgb", OperationGroup::Types, Pattern::Composition, "Red, green and blue of CIE L*a*b* (D65)")
        .called("convert_colour")
        .elsewhere(&["ski.color.lab2rgb", "cv.cvtColor(COLOR_Lab2RGB)"])
        .example("to_unit lab_to_rgb");
    RGB_TO_YCBCR = description("rgb_to_ycbcr", OperationGroup::Types, Pattern::Composition, "Luma and colour differences (JPEG's) of red, green and blue")
        .called("convert_colour")
        .elsewhere(&["ski.color.rgb2ycbcr", "cv.cvtColor(COLOR_RGB2YCrCb)"])
        .differs("Y, Cb, Cr in 0..=1; OpenCV has Cr before Cb, scikit-image 16..235")
        .example("to_unit rgb_to_ycbcr");
    YCBCR_TO_RGB = description("ycbcr_to_rgb", OperationGroup::Types, Pattern::Composition, "Red, green and blue of luma and colour differences")
        .called("convert_colour")
        .elsewhere(&["ski.color.ycbcr2rgb", "cv.cvtColor(COLOR_YCrCb2RGB)"])
        .example("to_unit ycbcr_to_rgb");
    PASTE = description("paste", OperationGroup::Types, Pattern::Composition, "Pastes the other picture over this one; parts beyond the edge are cut off")
        .takes(&[required("other", Accepts::File, ""), required("top", Accepts::Offset, "row of its upper left pixel"), required("left", Accepts::Offset, "column of its upper left pixel")])
        .elsewhere(&["np: `a[y:, x:] = b`", "cv.copyTo", "image::imageops::replace"])
        .differs("clipped to the image")
        .example("paste @in 4 -3");
    OTSU = description("otsu", OperationGroup::Thresholds, Pattern::Composition, "A mask, true above Otsu's threshold of each channel, from a histogram of 256 levels over its range")
        .elsewhere(&["ski.filters.threshold_otsu", "cv.threshold(THRESH_OTSU)", "imageproc::contrast::otsu_level"])
        .differs("the method yields the threshold, of the image's type")
        .example("luminance gauss 1 otsu");
    REMOVE_SMALL = description("remove_small", OperationGroup::Morphology, Pattern::Composition, "A mask without components of fewer pixels")
        .takes(&[required("pixels", Accepts::Count, "of the smallest component that stays"), NEIGHBOURS])
        .elsewhere(&["ski.morphology.remove_small_objects", "cv.filterSpeckles"])
        .differs("components of `pixels` stay, as `max_size` one less")
        .example("luminance otsu remove_small 20 8");
    FILL_SMALL = description("fill_small", OperationGroup::Morphology, Pattern::Composition, "A mask whose holes of fewer pixels are filled")
        .takes(&[required("pixels", Accepts::Count, "of the smallest hole that stays"), NEIGHBOURS])
        .elsewhere(&["ski.morphology.remove_small_holes"])
        .differs("holes of `pixels` stay; the background around the picture's objects counts as a hole")
        .example("luminance otsu fill_small 20");
    KEEP_LARGEST = description("keep_largest", OperationGroup::Morphology, Pattern::Composition, "A mask of the largest component, or of several of that size")
        .takes(&[NEIGHBOURS])
        .elsewhere(&["cv.connectedComponentsWithStats"])
        .example("luminance otsu keep_largest");
    CLEAR_BORDER = description("clear_border", OperationGroup::Morphology, Pattern::Composition, "A mask without components that touch the edge of the picture")
        .takes(&[NEIGHBOURS])
        .elsewhere(&["ski.segmentation.clear_border"])
        .differs("of masks; of labels by `lookup`")
        .example("luminance otsu clear_border 8");
    CANNY = description("canny", OperationGroup::Detectors, Pattern::Composition, "A mask, true on edges one pixel wide of the luminance; weak edges stay if they continue strong ones")
        .takes(&[optional("sigma", Accepts::Number, "1", "of the Gaussian, in pixels"), optional("low", Accepts::Number, "0.1", "of the gradient of weak edges"), optional("high", Accepts::Number, "0.2", "of the gradient of strong edges")])
        .elsewhere(&["ski.feature.canny", "cv.Canny", "imageproc::edges::canny"])
        .differs("a function, `canny(&a, sigma, low, high)`; equal to scikit-image; OpenCV does not interpolate between neighbours")
        .example("canny 1 0.05 0.15");
    EQUALIZE_HIST = description("equalize_hist", OperationGroup::Types, Pattern::Composition, "Each pixel becomes the share of pixels that are not brighter, from 0 to 1, of all channels together")
        .also(&["equalize"])
        .takes(&[optional("bins", Accepts::Count, "256", "of floats; each value of integers has its own")])
        .elsewhere(&["ski.exposure.equalize_hist", "cv.equalizeHist", "imageproc::contrast::equalize_histogram"])
        .differs("a function, `equalize_hist(&a, bins)`, of integers of 8 and 16 bits and floats; OpenCV yields bytes")
        .example("luminance equalize_hist");
    EQUALIZE_ADAPTHIST = description("equalize_adapthist", OperationGroup::Types, Pattern::Composition, "Equalized histograms of tiles with limited contrast (CLAHE), of the luminance, from 0 to 1")
        .also(&["clahe"])
        .takes(&[optional("height", Accepts::Count, "0", "of a tile; 0: an eighth of the picture"), optional("width", Accepts::Count, "0", "of a tile; 0: an eighth of the picture"), optional("limit", Accepts::Number, "0.01", "the largest share of a tile's pixels in a bin"), optional("bins", Accepts::Count, "256", "of a tile's histogram")])
        .elsewhere(&["ski.exposure.equalize_adapthist", "cv.createCLAHE"])
        .differs("a function; histograms are counted at the call; equal to scikit-image")
        .example("equalize_adapthist 10 8 0.02");
    BILATERAL = description("bilateral", OperationGroup::Filters, Pattern::Composition, "The mean of a disc, weighted by Gaussians of distance and of difference of colour; keeps edges")
        .takes(&[required("sigma_colour", Accepts::Number, "on a scale where white is 1"), required("sigma_space", Accepts::Number, "in pixels"), optional("size", Accepts::Count, "0", "diameter of the disc; 0: three times `sigma_space`"), BORDER])
        .elsewhere(&["cv.bilateralFilter", "ski.restoration.denoise_bilateral", "imageproc::filter::bilateral_filter"])
        .differs("a function; weights by OpenCV's formula, computed without its table; scikit-image takes a square and rounds differences")
        .example("to_unit bilateral 0.2 2 5");
    LOCAL_MAXIMA = description("local_maxima", OperationGroup::Morphology, Pattern::Composition, "A mask, true where connected pixels of one value have no brighter neighbour")
        .takes(&[optional("neighbours", Accepts::Choice(|| vec!["4", "8"]), "8", "")])
        .elsewhere(&["ski.morphology.local_maxima"])
        .differs("a function; NaN are no maxima; no option of borders")
        .example("luminance gauss 1 local_maxima");
    PEAK_LOCAL_MAX = description("peak_local_max", OperationGroup::Numbers, Pattern::Composition, "Row and column of each peak of the luminance, a line each, the highest first")
        .takes(&[optional("distance", Accepts::Count, "1", "pixels around a peak that are not higher"), optional("threshold", Accepts::Limit, "auto", "peaks are higher; `auto`: the lowest pixel"), optional("border", Accepts::Limit, "auto", "pixels at the edge without peaks; `auto`: `distance`")])
        .elsewhere(&["ski.feature.peak_local_max"])
        .differs("a function, sorted by the host")
        .example("peak_local_max 2 0.3");
    WATERSHED = description("watershed", OperationGroup::Morphology, Pattern::Composition, "Basins of markers: `watershed(&a, &markers, connectivity, None)`")
        .elsewhere(&["ski.segmentation.watershed", "cv.watershed"])
        .differs("a function, evaluated at the call, on the host; equal to scikit-image; OpenCV floods colours and leaves lines");
    PERCENTILE = description("percentile", OperationGroup::Numbers, Pattern::Composition, "The value below which so many percent of all pixels lie, interpolated")
        .takes(&[required("percent", Accepts::Number, "0 to 100")])
        .elsewhere(&["np.nanpercentile", "np.nanmedian", "imageproc::stats::percentile"])
        .differs("exact, interpolated; NaN is ignored")
        .example("luminance percentile 50");
    HOUGH_LINE = description("hough_line", OperationGroup::Numbers, Pattern::Composition, "The number of true pixels on each straight line: a line each distance, a column each angle")
        .takes(&[optional("angles", Accepts::Count, "180", "of half a turn, from -90 degrees on")])
        .elsewhere(&["ski.transform.hough_line", "cv.HoughLines"])
        .differs("a function, by the host; equal to scikit-image, angle by angle; OpenCV chooses lines by a threshold")
        .example("luminance otsu hough_line 4");
    PYRAMID_DOWN = description("pyramid_down", OperationGroup::Geometry, Pattern::Composition, "Half the height and width, smoothed by 1 4 6 4 1; yields floats")
        .elsewhere(&["cv.pyrDown", "ski.transform.pyramid_reduce"])
        .differs("scikit-image takes a Gaussian")
        .example("pyramid_down");
    PYRAMID_UP = description("pyramid_up", OperationGroup::Geometry, Pattern::Composition, "Twice the height and width, smoothed by 1 4 6 4 1; yields floats")
        .elsewhere(&["cv.pyrUp", "ski.transform.pyramid_expand"])
        .differs("`pyrUp` differs at the lower and the right edge; scikit-image takes a Gaussian")
        .example("pyramid_up");
    OPENING = description("opening", OperationGroup::Morphology, Pattern::Composition, "Removes bright details smaller than the footprint")
        .also(&["open"])
        .takes(&[FOOTPRINT])
        .elsewhere(&["ndi.grey_opening", "ndi.binary_opening", "cv.morphologyEx(MORPH_OPEN)", "imageproc::morphology::open"])
        .example("opening 3");
    CLOSING = description("closing", OperationGroup::Morphology, Pattern::Composition, "Removes dark details smaller than the footprint")
        .also(&["close"])
        .takes(&[FOOTPRINT])
        .elsewhere(&["ndi.grey_closing", "ndi.binary_closing", "cv.morphologyEx(MORPH_CLOSE)", "imageproc::morphology::close"])
        .example("closing rectangle 3 5");
    TOP_HAT = description("top_hat", OperationGroup::Morphology, Pattern::Composition, "What an opening removes")
        .also(&["tophat"])
        .takes(&[FOOTPRINT])
        .elsewhere(&["ndi.white_tophat", "cv.morphologyEx(MORPH_TOPHAT)"])
        .example("top_hat disc 3");
    BLACK_HAT = description("black_hat", OperationGroup::Morphology, Pattern::Composition, "What a closing adds")
        .also(&["blackhat"])
        .takes(&[FOOTPRINT])
        .elsewhere(&["ndi.black_tophat", "cv.morphologyEx(MORPH_BLACKHAT)"])
        .example("black_hat disc 3");
    MORPHOLOGICAL_GRADIENT = description("morphological_gradient", OperationGroup::Morphology, Pattern::Composition, "Dilation minus erosion")
        .also(&["gradient"])
        .takes(&[FOOTPRINT])
        .elsewhere(&["ndi.morphological_gradient", "cv.morphologyEx(MORPH_GRADIENT)"])
        .example("morphological_gradient 3");
}
