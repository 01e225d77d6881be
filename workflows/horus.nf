// A module for Nextflow: applies operations of the command `horus` to pictures.
//
//     include { HORUS; HORUS_NUMBERS } from './workflows/horus.nf'
//
//     workflow {
//         pictures = channel.fromPath('in/*.tif').map { file -> tuple([id: file.baseName], file) }
//         HORUS(pictures, [], 'luminance gauss 2 sobel')
//         HORUS_NUMBERS(HORUS.out.pictures, [], 'mean')
//     }
//
// The second input is files that operations name: HORUS(pictures, file('dark.tif'), 'sub @dark.tif'). A tuple may have several
// pictures, which one process computes. Options, such as `--format tif`, are `ext.args` of a configuration.

process HORUS {
    tag "${meta.id}"

    input:
    tuple val(meta), path(pictures)
    path operands
    val operations

    output:
    tuple val(meta), path('results/*'), emit: pictures

    script:
    """
    horus --threads ${task.cpus} ${task.ext.args ?: ''} ${pictures} --out-dir results ${operations}
    """
}

process HORUS_NUMBERS {
    tag "${meta.id}"

    input:
    tuple val(meta), path(pictures)
    path operands
    val operations

    output:
    tuple val(meta), path('numbers.tsv'), emit: numbers

    script:
    """
    horus --threads ${task.cpus} ${task.ext.args ?: ''} ${pictures} ${operations} > numbers.tsv
    """
}
