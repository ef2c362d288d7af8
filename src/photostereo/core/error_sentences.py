"""Texts of errors, by code, formatted with the file and the values of the error. To add one, add a line.

A text that is composed where the error is raised, or that names command-line options, is given there instead.
"""

from __future__ import annotations

from collections.abc import Mapping

ERRORS: Mapping[str, str] = {
    # Values
    "missing-extra": '{what} need {library}. Install it with: pip install "photostereo[{extra}]"',
    "missing-lab": "The command {command} is in the package photostereo-lab. Install it with: pip install "
    "photostereo-lab (in a checkout of photostereo: pip install ./lab)",
    "bad-pixel-size": '"{text}" is not a pixel size. Write a positive number with its unit, for instance 0.1mm, '
    "50um or 0.002in; a number alone means millimeters.",
    "unknown-parameter": 'Method {method} has no parameter "{name}".{hint} Its parameters: {listing}.',
    # Files
    "output-exists": "{file} already exists.",
    "output-is-a-folder": "{file} is a folder, but the output is a file. Choose another name.",
    "broken-link": "{file} is a broken link. Remove it or choose another folder for the results.",
    "output-contains-input": "{file} contains {needed}, which this run needs. Choose another folder for the "
    "results.",
    "output-is-a-file": "{file} is a file, but the results need a folder. Choose another name or remove the file.",
    "output-in-use": "{file} is never replaced, because it contains the current folder, your home folder or a git "
    "repository. Choose another folder for the results.",
    "not-our-folder": "{file} is never replaced, because photostereo did not write it. Choose another folder for the "
    "results.",
    "foreign-file": "{file} is never replaced, because it contains {name}, which {reason}. Move that file elsewhere, "
    "or choose another folder for the results.",
    "cannot-write": "Cannot write to {file}: {reason}. Check the path, the permissions and the free disk space.",
    "damaged-image": "The image {file} cannot be read, because it is truncated, damaged or of an unknown kind: "
    "{problem}. Copy or export it again; if that is not possible, leave it out together with its light.",
    "image-shape": "{file} has {found}; expected one picture, gray (Y) or RGB. Export a single picture.",
    "unreadable-folder": "The folder {file} cannot be read: {strerror}. Check its name and permissions.",
    "image-type": "{file} contains numbers of type {type}, whose scale is not known. Export it as 8- or 16-bit "
    "unsigned integers or 32-bit float.",
    "invalid-memory": '"{text}" is not an amount of memory. Write a number and a unit, such as 4GB.',
    "not-weights": "{file} does not hold network weights: {problem}. {advice}",
    "damaged-weights": "The network weights in {file} do not match their digest: the file was damaged or edited. "
    "{advice}",
    "wrong-shipped-weights": "The installed network weights are not those of this version. Install photostereo "
    "again.",
    "cannot-encode": "A picture of shape {shape} cannot be encoded as {format}.",
    "file-too-large": "The {what} {file} has {size} bytes, more than the limit of {limit}. {advice}",
    "invalid-name": "The {what} {name!r} has an invalid name ({error}). Correct the name.",
    "unreadable-file": "The {what} {file} cannot be read: {reason}. {advice}",
    "not-a-file": "The {what} {file} is not a file. {advice}",
    "invalid-toml": "{file} is not valid TOML: {error}. Correct that line.",
    # Lights
    "no-highlight": "The ball shows no highlight in {names}. If the light was off there on purpose, rename that "
    "photograph to ambient.* to have it subtracted; if it was hidden or behind the ball, or the photograph is "
    "blurred, leave it out.",
    "no-ball": "No ball was found in the photographs: nothing round shows a small highlight that moves with the "
    "light, or the shading of a matte ball.",
    "circle-without-ball": "The circle ({words}) shows neither a moving highlight nor the shading of a ball. "
    "Check the circle: column, row and radius in pixels, from the top left corner.",
    "light-units": "The nearest light in {file} is {distance:.3g} mm from the middle of the frame, which shows "
    "{frame:.3g} mm. Check the unit of the positions and the size of a pixel.",
    "light-position": "In {file} a light has no position above the table (its z is not positive, or not a "
    "number). Correct that line, or remove the columns of the positions.",
    "light-strength": "In {file} the strength of light {light} is not a positive number (from {low:g} to "
    "{high:g}). Correct that line, or leave out the photograph together with its light.",
    "lights-count": "{name} has {photographs} photographs but {lights} light directions. Each photograph needs "
    "exactly one light, in the same order: add the missing ones or remove the extra ones.",
    "lights-need-mask": "The positions of the lights are in widths of the object; a mask is needed to convert "
    "them to pixels.",
    "lights-shape": "The {words} have the shape {shape}; expected one row x y z per photograph, (d, 3).",
    "thin-mask": "The mask is too thin: almost nothing of the object is left in a picture of {side} × {side} "
    "pixels. Give a mask that covers the object.",
    "circle-outside": "The circle ({words}) is not in the photographs, which are {width} × {height} (width × "
    "height). Give column, row and radius in pixels.",
    "lights-coplanar": "The lights of {name} lie in a plane (smallest to largest singular value {share:.1e}), so "
    "the normals cannot be determined. Add a photograph with the light well outside that plane, for instance from "
    "above.",
    # Captures
    "empty-mask": "The mask of {name} is empty: no pixel belongs to the object. A mask is white on the object and "
    "black elsewhere.",
    "black-photographs": "All {photographs} photographs of {name} are black inside the mask, so the object is "
    "not visible. Check the exposure, the files and the mask.",
    "photograph-count": "{requested} photographs were requested, but {name} has {available} and at least 3 are "
    "needed. Choose a number from 3 to {available}.",
    "negative-intensities": "{name} has negative intensities, for which Poisson noise is not defined. Subtract a "
    "smaller black level, or use Gaussian noise.",
    "bad-noise": "The {words} must be a number from {low:g} to {high:g}, not {value!r}.",
    "lights-not-estimated": "{file} {has}, and the lights cannot be estimated from the photographs either: {why}.",
    "archive-arrays": "{file} holds {known}, but a capture needs the arrays images and lights. Save it with "
    "numpy.savez(path, images=..., lights=..., mask=...).",
    "archive-images": "The images in {file} have the shape {shape} and the type {dtype}; expected (d, H, W) or "
    "(d, H, W, 3), unsigned integers or floating point.",
    "archive-text": "{name} in {file} is text; expected numbers. Save it again with numpy.savez.",
    "no-strengths": "{path} looks like the DiLiGenT layout but has no {strengths}. Add it (one line R G B per "
    "light); if all lights are equally strong, rename {directions} to lights.txt, so that the folder is read as a "
    "plain one.",
    "bad-sidecar": '{file} does not describe a capture: expected {{"name": ..., "notes": [...]}}. Restore it, or '
    "remove it.",
    "several-masks": "{file} has several masks: {names}. Keep one, named mask.png.",
    "ball-series-count": "{file} has {found} photographs of the ball, but there are {expected} of the object. "
    "Each light needs one of each, with the same number in their names or in the same order.",
    "no-light-file": "{path} has no {known}, so its {choice} lights cannot be used. Choose the other light file.",
    "several-light-files": "{file} has several .lp files: {names}. Give the path of the one to use.",
    "light-file-header": "The first line of {file} must be the number of photographs; the others: filename x y z. "
    "Correct the file.",
    "light-file-count": "{file} announces {announced} photographs in its first line but lists {found}, {few} than "
    "that. Complete the list, or correct the number.",
    "light-file-empty": "{file} lists no photographs. Add lines: filename x y z.",
    "no-ball-folder": "The folder of the ball, {file}, does not exist. Check its name.",
    "crop-with-widths": "{file} gives the positions of the lights in widths of the object, and a part of the "
    "frame may not contain the whole object. Use the whole frame, or give the positions in pixels (position_x, "
    "position_y, position_z).",
    "no-such-capture": "{file} does not exist. Give the folder that contains the photographs, an RTI .lp file or "
    "an .npz archive.",
    "strengths-in-archive": "The photographs in this file are divided by their light strengths already, so these "
    "cannot be estimated.",
    "no-lights": "{file} has neither a light file ({names}) nor photographs of a ball, so its lights cannot be "
    "used. Name a light file.",
    "not-a-capture": "{file} is not a capture. Give a folder, an .lp file or an .npz file. Supported: {known}.",
    "several-captures": "{file} is not a capture itself but contains {count} of them: {shown}. Give the path of "
    "one.",
    "no-object": "No object that stands out from its background was found in {name}. Provide a mask picture.",
    "photographs-shape": "The photographs of {name} have the shape {shape}; expected (photographs, height, width) "
    "for gray or (photographs, height, width, 3) for color. Stack them along the first axis.",
    "too-few-photographs": "{name} has {found} photograph(s), but photometric stereo needs at least three under "
    "different lights (ten or more for good results). Add photographs.",
    "not-a-folder": "{file} is not a folder. Give the folder that contains the photographs.",
    "truth-size": "The truth in {file} is {size} pixels (rows × columns) but the photographs are {height} × "
    "{width}. Crop or scale it in the same way as the photographs, or remove it.",
    "no-mask-file": 'The mask {file} does not exist. Give a picture, "auto" (found in the photographs), "bright" '
    'or "full".',
    "mask-size": "{label} is {size} pixels (rows × columns) but the photographs are {height} × {width}. Paint it "
    "on a photograph at full size.",
    "mode-mismatch": "{file} is {own} but {name} is {usual}. Export all photographs in the same mode.",
    "companion-mismatch": "{file} does not have the size or the color mode of {name}. Take it with the same "
    "camera settings as the photographs, or move it out of the folder.",
    "photograph-not-finite": "{file} has {found} values that are NaN, infinite or beyond 1e15. Export it again "
    "without undefined pixels, or leave it out together with its light.",
    "bad-scale": "The scale must be above 0 and at most 1; it is {scale}.",
    "crop-outside": "The crop {x},{y},{w},{h} (x, y, width, height) does not lie inside the photographs, which "
    "are {width} pixels wide and {height} high.",
    # Methods
    "no-state-in-parts": "{name} does not fit into {budget} and is solved in parts, which have no state to save "
    "or resume.",
    "threshold-out-of-range": "mu, the threshold of the sparse codes, must be zero or a positive number, not {mu}.",
    "bound-below-threshold": "q, the bound on the sparse codes, must be positive and at least mu, because the "
    "closed form of the code update holds only then; got q = {q} with mu = {mu}. Leave q out, or raise it.",
    "atoms-not-a-count": "The number of atoms must be a positive whole number; got {atoms}.",
    "more-atoms-than-patches": "There are more atoms than patches: {atoms} atoms, but only {patches} patches "
    "touch the mask. Choose fewer atoms, a smaller patch or a smaller stride.",
    "too-few-cosines": "A patch of one pixel has only {w_z} separable cosines, fewer than the {count} atoms "
    "requested. Choose fewer atoms or a larger patch.",
    "no-patches-to-draw": 'The initial dictionary "random-patches" needs the patches to draw from, one of '
    "{length} values per row.",
    "too-few-patches-to-draw": 'The initial dictionary "random-patches" draws {count} different patches, but only '
    '{there} are not zero. Choose fewer atoms or the dictionary "dct".',
    "dictionary-of-another-shape": "A dictionary for these patches must have one atom of {length} values per row; this "
    "array has shape {shape}.{hint}",
    "dictionary-of-another-size": "The dictionary given has {given} atoms, but {atoms} were requested. Leave the "
    "number of atoms out.",
    "dictionary-not-finite": "The dictionary given has values that are not finite numbers.",
    "atoms-not-unit": "The atoms of a dictionary must have unit norm, but atom {worst} of the one given has norm "
    "{norm:.4g}. Divide each row by its norm.",
    "wrong-type": "The dictionary {file} holds values of type {dtype}. {advice}",
    "bad-patch-size": "A patch size must be three positive whole numbers (w_x, w_y, w_z); got {size}.",
    "bad-patch-depth": "A patch must span w_z = 3 components of the normals, or w_z = 1 to treat them separately; got "
    "w_z = {depth}.",
    "bad-stride": "The patch stride must be a positive whole number, or two of them (s_x, s_y); got {stride}.",
    "patch-larger-than-picture": "The patch is larger than the picture: w_{axis} = {width} pixels, but the "
    "picture has {length} along {axis}. Choose a smaller patch size.",
    "stride-larger-than-patch": "The stride is larger than the patch: {step} against w_{axis} = {width}, which "
    "would leave pixels between the patches uncovered. Choose a stride of at most {width}.",
    "broken-plugin": "The model {name} cannot be loaded from {model} ({problem}). Update or uninstall the package "
    "it comes from.",
    "unknown-device": 'There is no device "{name}".{hint} Use cpu, or cuda for an NVIDIA GPU.',
    "no-gpu": "There is no NVIDIA GPU for the device {name}: {built}. Check `nvidia-smi` and "
    "https://pytorch.org/get-started, or leave the device out to compute on the CPU.",
    "old-gpu": "The GPU of the device {name} is too old: it has compute capability {major}.{minor}, and "
    "{oldest}.0 is needed. Leave the device out to compute on the CPU.",
    "gpu-memory": "The GPU's memory is too small for this capture. Crop it to its mask, use fewer photographs or "
    "a larger stride, solve fewer settings at once, or leave the device out to compute on the CPU.",
    "result-not-finite": "With these parameters the result is not a finite number. Choose less extreme values, or "
    "use the defaults.",
    "method-not-on-device": "Method {method} does not run on {device}, only on the CPU. Leave the device out, or "
    "choose one of {able}.",
    "nothing-to-resume": "A method without a prior has no iteration to save or resume. Leave out `resume` and "
    "`checkpoint`, or use a method with a prior, such as pdlnv.",
    "not-a-direction": "A light direction must be three numbers, not all zero: x right, y up, z toward the camera.",
    "damaged-result": "The results in {file} are damaged ({problem}). Solve again.",
    "checkpoint-exists": "{file} exists and is not the saved state of a solve, so it is not overwritten. Choose "
    "another name for the checkpoint.",
    "damaged-state": "{file} is not the saved state of a solve: {problem}. {advice}",
    "method-not-divisible": "{method} compares all pixels and cannot be solved in parts. Use another method.",
    # Surfaces
    "albedo-shape": "The albedo has {albedo} pixels, but the mask has {mask}.",
    "bad-camera": "The camera matrix must read [[f_x, 0, c_x], [0, f_y, c_y], [0, 0, 1]] in pixels, with positive "
    "focal lengths and no skew; it reads {matrix}. Undistort the photographs first.",
    "bad-highpass": "The high-pass length must be at least one pixel; it is {highpass}.",
    "bad-integration-option": "tol and rtol must lie between 0 and 1; sharpness and anchor_weight must be "
    "positive.",
    "simchony-is-unweighted": "simchony solves an unweighted rectangle and takes neither weights nor anchors; use "
    "poisson.",
    "anchors-shape": "The anchors have {anchors} pixels, but the mask has {mask}.",
    "anchors-not-negative": "With a camera, heights are −Z, the negative distance along the optical axis: anchors "
    "must be negative.",
    "bad-base": "The thickness of the base must be positive; it is {base}.",
    "no-triangles": "No three neighboring pixels lie inside the mask, so there is no triangle to build a mesh "
    "from.",
    "too-few-triangles": "A mesh needs at least four triangles; {triangles} were requested.",
    "no-fast-simplification": "Simplifying a mesh needs the package fast-simplification: pip install "
    "fast-simplification",
    "normals-shape": "Normals must have the shape (H, W, 3); these have {shape}.",
    "mask-shape": "The mask has {mask} pixels, but the normal map has {normals}.",
    "no-normals": "Every normal inside the mask is zero or not finite: there is nothing to integrate.",
    "normals-face-away": "{away} of {known} normals face away from the camera (z ≤ 0). Normals must point out of "
    "the surface, z toward the camera. Change the sign of normals from tools with another convention.",
    "weights-shape": "The weights have {weights} pixels, but the mask has {mask}.",
    "bad-weights": "Weights must be finite, not negative, and positive somewhere inside the mask.",
    # Scenes
    "bad-reflectance-parameter": 'The reflectance parameter "{name}" is {value!r}, but it must be {wanted}.',
    "too-few-lights": "{count} lights were requested; a scene needs at least 1, photometric stereo at least 3.",
    "light-behind-object": "A light {angle:g} degrees from the camera axis was requested. Lights must be in front "
    "of the object: choose an angle from the axis of at least 0 and below 90 degrees (an elevation above 0).",
    "shape-without-colors": 'This shape has no colors, so it cannot have the texture "painted".',
    "no-attached-shadows": "Only a Lambertian reflectance is defined for surfaces that face away from the "
    'light; keep attached shadows for the others, or choose reflectance="lambertian".',
    "bad-scene-lights": "The lights of a scene must be directions x y z, one row each, in front of the object "
    "(z above 0).",
    "bad-radius": "The sphere's radius is {radius:g}, but it must be above 0.",
    "bad-scene-size": "The size of a scene is {size!r}, but it must be one whole number or two (height, width), "
    "each at least 2.",
    # Results
    "no-format": "No format was given. Choose from {formats}.",
    "needs-openexr": 'Writing EXR needs the package OpenEXR: pip install "photostereo[exr]"',
    "normal-map-is-gray": "{file} is a gray picture; a normal map has three channels, x, y, z in R, G, B.",
    "normal-map-type": "{file} holds {dtype} values; save the normal map as 8- or 16-bit PNG.",
    "sample-too-small": "The largest rectangle inside the mask is {width} × {height} pixels; a material needs at "
    "least {least} × {least}. Use a mask without holes.",
    "material-size": "A material must have {least} to {most} texels along a side, not {size}.",
    # Reports
    "port-unavailable": "Port {port} on {host} cannot be used ({problem}). Choose another, or 0 for any free port.",
    "nothing-in-common": "The results have no pixel in common. Compare results of the same capture.",
    "sizes-differ": "{what} measures {found} pixels, the others {expected}. Compare results of the same capture.",
    "counts-differ": "{results} results but {depths} depth maps were given. Give one for each, or None.",
    "nothing-to-compare": "There is nothing to compare: give at least one result.",
    "link-leaves-folder": 'The report links files beside it, but "{label}" points to "{target}". Give a path '
    "relative to the report's folder.",
    "needs-matplotlib": 'Plots need matplotlib: pip install "photostereo[figures]"',
    "no-report": "{file} has no report.html. Give the output folder of a solve, a comparison or the demo.",
    # Many captures
    "no-database": "There are no {what} in {folder}. Run it first.",
    "missing-capture": "{file} does not exist. Name captures, or a folder that contains captures.",
    "unreadable-capture": "{file} cannot be read ({problem}). Check the path and its permissions.",
    "bad-deadline": "{name} must be a positive number of seconds, not {seconds}.",
    "no-scheduler": "No Dask scheduler answers at {scheduler} ({problem}). Start one with `dask scheduler` and "
    "its workers with `dask worker`, or give no address to use this machine.",
    "other-version-on-workers": "The workers have photostereo {versions} and this is {version}: their results "
    "would not be comparable. Install the same version everywhere.",
    "no-captures": "There are no captures in {places}. Name captures, or a folder that contains a folder (or an "
    ".npz or .lp file) for each.",
    "missing-file": "The {option} file {file} does not exist. Give the path of a file for all captures.",
    # Commands
    "not-a-result": "{file} is not the result of a solve. Give one capture, or two or more OUT folders of "
    "`photostereo solve`.",
    "one-result": "{file} is a result. Give at least one more result to compare it with.",
    "missing-result": "{file} does not exist. Give the OUT folder of a solve, or a normal-map PNG.",
    "not-a-setting": '"{text}" is not a setting. Write NAME=VALUE, for example {example}.',
    "not-numbers": '"{text}" is not a value of {option}: expected {count} comma-separated numbers.',
}
