// Runs the command `horus` on the open image of QuPath, and opens the result. Edit the next lines, then run it in the editor of scripts.
def operations = "luminance gauss 2 sobel"
def program = "horus"
// Computed are all channels of the plane that is shown, inside the rectangle round the selected object if there is one. Each pixel of
// the result is `downsample` pixels wide.
def downsample = 1.0

def server = getCurrentServer()
def viewer = getCurrentViewer()
def roi = getSelectedROI()
def request = roi != null
    ? RegionRequest.createInstance(server.getPath(), downsample, roi)
    : RegionRequest.createInstance(server.getPath(), downsample, 0, 0, server.getWidth(), server.getHeight(), viewer.getZPosition(), viewer.getTPosition())

// In the folder of the project, because QuPath reads images from their files as long as they are open.
def folder = getProject() == null ? java.nio.file.Files.createTempDirectory("horus").toString() : buildFilePath(PROJECT_BASE_DIR, "horus")
mkdirs(folder)
def time = System.currentTimeMillis()
// QuPath writes channels as a stack of ImageJ, and reads colours from TIFF files and channels from OME-TIFF files.
def isStack = server.nChannels() > 1 && !server.isRGB()
def input = buildFilePath(folder, "in-${time}.tif")
def output = buildFilePath(folder, "out-${time}." + (isStack ? "ome.tif" : "tif"))
writeImageRegion(server, request, input)
try {
    def words = [program, *(isStack ? ["--volume"] : []), input, output, *operations.trim().split(/\s+/)]
    def process = new ProcessBuilder(words*.toString()).redirectErrorStream(true).start()
    def messages = process.getInputStream().getText("UTF-8")
    print messages
    if (process.waitFor() != 0)
        throw new IOException("horus: " + messages)
} finally {
    new File(input).delete()
}
// Windows belong to one thread. In a project, QuPath asks how to import the image.
Platform.runLater { getQuPath().openImage(viewer, output, true, false) }
