// Runs the command `horus` on the open image of Fiji, and opens the result.
//
// Computed are all slices and channels of the time that is shown, inside the rectangle of a selection if there is one. Put the file into
// the folder `scripts` of Fiji for an entry in the menu (Plugins > Scripts), or open it in the editor of scripts.
#@ ImagePlus image
#@ String (label = "Operations", value = "gauss 2 sobel") operations
#@ String (label = "Program", value = "horus") program

import ij.IJ
import ij.io.FileSaver
import ij.plugin.Duplicator
import java.nio.file.Files

def folder = Files.createTempDirectory("horus").toFile()
try {
    def channels = image.getNChannels()
    // ImageJ reads channels that are pages, as those of OME-TIFF are.
    def (input, output) = [new File(folder, "in.tif"), new File(folder, channels > 1 ? "out.ome.tif" : "out.tif")]
    // A copy, because saving would change the title of the open image.
    def shown = new Duplicator().run(image, 1, image.getNChannels(), 1, image.getNSlices(), image.getT(), image.getT())
    def saver = new FileSaver(shown)
    def isStack = shown.stackSize > 1
    if (!(isStack ? saver.saveAsTiffStack(input.path) : saver.saveAsTiff(input.path)))
        throw new IOException("the image could not be written to $input")
    def words = [program, *(isStack ? ["--volume"] : []), input.path, output.path, *operations.trim().split(/\s+/)]
    def process = new ProcessBuilder(words*.toString()).redirectErrorStream(true).start()
    def messages = process.inputStream.getText("UTF-8")
    IJ.log(messages)
    if (process.waitFor() != 0)
        throw new IOException("horus: $messages")
    def result = IJ.openImage(output.path)
    // ImageJ reads OME-TIFF files as pages alone: channels, then slices.
    if (channels > 1 && result.stackSize % channels == 0)
        result.setDimensions(channels, (int) (result.stackSize / channels), 1)
    if (result.getNSlices() > 1)
        result.calibration.pixelDepth = image.calibration.pixelDepth
    result.title = "$image.title: $operations"
    result.show()
} finally {
    folder.deleteDir()
}
