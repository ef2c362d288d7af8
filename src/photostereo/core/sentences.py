"""Texts of findings, by code, formatted with the finding's values; ``{share:percent}`` is a share as a percentage.

Notes on how a capture was read begin in lower case, to follow a bullet. To add a finding, add a line.
"""

from __future__ import annotations

from collections.abc import Mapping

_LEVEL = "about {snr_db:.0f} dB; by itself it turns a least-squares normal by about {degrees:.1f}°"

SENTENCES: Mapping[str, str] = {
    "note": "{note}",
    # Photographs, as they were read
    "aperture-changes": "the aperture changes (f/{least:g} to f/{most:g}): brightness and sharpness change with it. "
    "Set it by hand",
    "focal-changes": "the focal length changes ({least:g} to {most:g} mm): the photographs do not line up. "
    "Set it by hand",
    "white-balance-changes": "the white balance changes between the photographs. Set it by hand",
    "exif-damaged": "the EXIF entries of {damaged} of {photographs} photographs cannot be read: their exposure is "
    "assumed to be that of the others, and their focal length is not known",
    "exposure-compensated": "the exposure changes by a factor of {factor:.3g} between the photographs; compensated",
    "exposure-in-strengths": "the exposure changes between the photographs, and the strengths in the light file "
    "change with it: they are assumed to include the exposure, which is not compensated again",
    "exposure-not-recorded": "the exposure changes between the photographs, but {missing} of them do not record it, "
    "so it is not compensated",
    "orientation-differs": "the EXIF orientation differs between the photographs: some were taken with the camera "
    "turned. All are used as stored",
    "orientation-undone": "the photographs are {turned}, as viewers show them (EXIF orientation {orientation}); masks "
    "and light directions refer to this view",
    "brackets-merged": "the {photographs} photographs are several exposures of {lights} lights: merged into one per "
    "light",
    "bit-depths-differ": "the photographs differ in bit depth ({one}, {another}): each is divided by its own full scale",
    "few-bits": "the photographs have {bits} bits, not the usual {expected}: dark values are coarse. Use the "
    "originals if possible",
    "srgb-undone": "{some}the photographs are JPEG or tagged as sRGB: the sRGB curve is undone",
    "unlisted-photographs": "{count} pictures that {file} does not list were left out",
    "left-out": "{file} is left out: {why}",
    "used-all-the-same": "{file} is used although {why}, {because}",
    "camera-moved": "the camera moved: {count} of {photographs} photographs {were} moved back, by up to {pixels:.1f} "
    "pixels{turned} ({names})",
    "not-aligned": "these photographs may be displaced, blurred or of something else, and were left as they are: "
    "{names}. Check them, and leave them out if they do not match the others",
    "ambient-subtracted": "the ambient light in {file} is subtracted",
    "divided-by-flat": "the photographs are divided by {file}",
    "room-light": "other light in the room adds about {share:.0%} to the photographs: estimated from the shadows and "
    "subtracted. A photograph with the light off is more accurate",
    "noise-added": "{noise} was added",
    "negative-intensities": "{count} negative intensities ({share:percent}) were written as 0: 16-bit files cannot "
    "hold them",
    "edited-by-hand": "corrections by hand ({file}): {edits}",
    "truth-unknown": "the true normal is unknown (zero) at {count} mask pixels",
    # Masks
    "full-mask": "no mask: the full frame is used",
    "soft-mask": "{mask} has {count} pixels between black and white; cut at half",
    "mask-found": "no mask file: the mask was found in the photographs ({share:.0%} of the frame)",
    "mask-doubtful": "no mask file: the mask was found in the photographs ({share:.0%} of the frame); it may be "
    "wrong: {doubt}. Check it, or provide a mask picture",
    "mask-from-brightness": "no mask file: the mask was found from brightness ({share:.0%} of the frame)",
    "mask-not-found": "no mask file: the mask was found from brightness ({share:.0%} of the frame), as the object was "
    "not found with certainty ({doubt})",
    "ball-is-object": "the mask contains little but the ball: the ball is taken as the object",
    # Light files
    "light-file": "lights from {file}",
    "several-light-files": "several light files: {used} is used, {others} not",
    "light-file-estimated": "lights in {file} were estimated from photographs, to about {degrees:.0f}°",
    "light-axes-given": "the light file is read with the axes {axes}",
    "light-directions-reversed": "the light directions are reversed",
    "light-lengths-unused": "the vectors in {file} have lengths from {least:.3g} to {most:.3g}; only their directions "
    "are used. Give strengths in separate columns if the lengths mean strength",
    "lights-of-others": "{file} names other photographs: its lights are used in their order",
    "lights-behind": "{count} of {lights} lights in {file} come from behind the object (z is not positive): "
    "directions point from the object to the light, z toward the camera",
    "no-light-strengths": "no light strengths: all lights are assumed to be equally strong",
    "light-strengths-scaled": "light strengths were divided by their mean, {mean:.4g}",
    "near-lights": "the lights are near: their direction changes by {degrees:.0f}° over the frame",
    # Lights from balls and from the photographs
    "no-lights": "no light file and no ball",
    "lights-from-ball": "no light file: the light directions come from a {source} (accurate to about {degrees:.1f}°), "
    "their strengths: {strengths}",
    "strengths-vary": "the lights differ in strength by {span:.0%}, or the exposure varied: corrected. Was the camera on "
    "automatic?",
    "lights-estimated": "{which} are estimated from the photographs, to about {degrees:.0f}°; the relief may be too "
    "flat or too deep by a factor of up to {factor:.1f}. A shiny ball beside the object gives accurate lights",
    "strengths-estimated": "light strengths that are not known are estimated from the photographs: {source}",
    "relief-assumed": "the object is flat, so the depth of its relief is assumed rather than measured: lights of "
    "similar strength, and a surface that faces the camera on average. If bumps come out as hollows, reverse x and y "
    "of all lights",
    "ball-confirms-lights": "a ball in the photographs confirms the light file, to about {degrees:.1f}°",
    "ball-doubts-lights": "The light file and the ball in the photographs disagree by {degrees:.0f}° (typically). "
    "Check the light file, or remove it to use the ball.",
    "ball-doubts-some-lights": "The light file disagrees with the ball in the photographs about {names}; the others "
    "agree. Check the light file, or remove it to use the ball.",
    "balls-disagree": "{names}: the balls disagree about the light by {degrees:.0f}°: one of the highlights is "
    "another reflection. Look at the picture of the calibration",
    "two-lights-at-once": "two highlights that move in {names}: two lights at once? The stronger one is used; "
    "photometric stereo needs one light at a time",
    "light-from-shading": "no highlight in {names}: the direction was found from the shading of the object",
    "shading-disagrees": "{names}: the ball and the shading of the object disagree about the light by "
    "{degrees:.0f}° (usual: {usual:.0f}°). Look at the picture of the calibration",
    "strengths-implausible": "the strengths of the lights ({source}) would differ by a factor of {factor:.0f}: they "
    "are assumed to be equal. Check the directions; a matte ball or a gray card gives reliable strengths",
    "faint-ball": "light directions are accurate to about {degrees:.1f}°: the outline or the highlights of the ball "
    "are faint. A larger ball, a brighter ground or a longer exposure help; so does marking the ball",
    "focal-length-unknown": "light directions are accurate to about {degrees:.0f}°: the ball is away from the middle "
    "of the frame, and the focal length is not known. Give it, or put the ball closer to the middle",
    # Mistakes
    "mask-inverted": "The mask seems to be inverted: it contains {border:.0%} of the frame's border, and the rest "
    "of the frame is {times} brighter.",
    "light-order": "The lights seem to be in a different order from the photographs: {why}.",
    "light-axes": "The light file seems to use {kind}: {why}{agree}.",
    "lights-reversed": "The light directions seem to point from the light to the object: {why}.",
    "tone-curve": "The photographs seem to have a tone curve, which cameras apply to pictures for viewing: a matte "
    "surface leaves {misfit:.1%} of their variation unexplained, and {undone:.1%} with the curve undone.",
    "close-lights": "The lights seem to be close, at about {widths:.0f} widths of the frame: that bends the surface "
    "by about {degrees:.0f}°. Give their positions in the light file, or move them farther away.",
    "near-lights-unchecked": "The lights are near, so their axes and their order were not checked.",
    "blurred-photographs": "{count} of {photographs} photographs show much less detail than the others: they seem to "
    "be blurred or displaced. Leave them out.",
    "varying-exposure": "The exposure seems to vary by {share:percent} from photograph to photograph, and cannot be "
    "corrected with certainty. Was the camera on automatic? Give the strengths of the lights.",
    # Advice
    "no-problems": "No problems were found.",
    "displaced-photographs": "{count} of {photographs} photographs may be displaced and were not moved back. Check "
    "them, and leave them out if they do not match the others.",
    "narrow-lights": "The lights of all {photographs} photographs come from nearly the same direction (spread about "
    "{spread:.0f}°), so slopes hardly change the brightness. Move lights 30° to 60° to the sides.",
    "coplanar-lights": "The lights of all {photographs} photographs are nearly coplanar (within about {spread:.0f}° "
    "of one plane): add one {missing}.",
    "gap-between-lights": "No light comes from the {missing} of the picture (an empty sector of {degrees:.0f}°): "
    "slopes that face there are in shadow. Add a light on that side.",
    "lights-well-spread": "The lights are well spread (condition number {condition:.1f}; 1 is ideal).",
    "light-behind-object": "At least one light is behind the object (its z is negative). If this is wrong, the light "
    "file uses other axes: x must point right, y up, z toward the camera.",
    "vague-lights": "The light directions are accurate to about {degrees:.1f}° only. Use a larger ball with a clear "
    "outline, close to the middle of the frame, and original photographs: they record the focal length.",
    "vague-estimate": "The light directions are accurate to about {degrees:.1f}° only. A shiny ball beside the object "
    "gives accurate lights.",
    "turned-lights": "The normals do not belong to a surface unless all lights are turned by about {degrees:.0f}°, "
    "mostly about the {axis}. Check the light directions, and whether the camera or the object moved after they were "
    "measured.",
    "method-differs": "The normals differ by about {degrees:.0f}° from those of a model that allows for shadows and "
    "highlights. Use the default method.",
    "uncertain-normals": "The photographs leave the normals uncertain. Add photographs with the light from other sides.",
    "black-pixels": "{share:percent} of the pixels are black in every photograph and have no normal.",
    "black-background": "{share:percent} of the pixels are black in every photograph and have no normal. If that is "
    "background, exclude it with a mask.",
    "dim-photographs": "{count} of {photographs} photographs are nearly dark: less than a tenth as bright as the "
    "brightest (number {names}). Check the lights and the exposure, or leave them out with their lights; only {lit} "
    "show the object well.",
    "few-photographs": "With {photographs} photographs, a single shadow or highlight spoils a pixel. Take ten or "
    "more; with fewer, use the default method.",
    "poorly-lit": "{share:percent} of the pixels are lit in fewer than four photographs, so their normals are "
    "unreliable. Add photographs with higher lights.",
    "mild-shadows": "Shadows are mild: a typical pixel is dark in {usual:.0f} of {photographs} photographs.",
    "noise-unknown": "With three photographs, noise cannot be distinguished from fine texture.",
    "very-noisy": f"The photographs are very noisy ({_LEVEL}). Expose longer or average several shots. For these, use "
    "the default method, or dlnv for a matte object.",
    "noisy": f"The photographs are noisy ({_LEVEL}). Use a method with a dictionary, such as the default.",
    "low-noise": f"Noise is low ({_LEVEL}).",
    "eight-bits": "The photographs have 8 bits per channel: shadows are coarse, and the camera may have applied a "
    "tone curve. Prefer raw or 16-bit linear files.",
    "saturated": "{share:percent} of the values are saturated, in {affected} of {photographs} photographs (worst: "
    "number {worst}). Expose less.",
    "saturated-highlights": "Highlights are saturated in {affected} of {photographs} photographs ({share:percent} of "
    "all values; worst: number {worst}). Robust methods ignore them.",
    "not-matte": "A matte surface with {whose} leaves {share:percent} of a typical pixel's brightness unexplained: "
    "the object is shiny, strongly shadowed or noisy. The default method handles this; if the whole object is far "
    "from matte, compare it with pdlnv.",
    "good-fit": "The photographs fit {whose} well: {share:percent} of a typical pixel's brightness is unexplained.",
    "normals-away": "{share:percent} of the normals point away from the camera, which is impossible on a visible "
    "surface: shadows or noise misled the method there.",
    # Methods and results
    "asked-for-fast": "fast: robust, and quick at any size",
    "asked-for-best": "best: the most accurate on captures with truth",
    "most-accurate": "chosen as the most accurate on captures with truth",
    "chosen-by-count": "chosen because the most accurate method ({best}) was trained for {fewest} to {most} "
    "photographs, not {photographs}",
    "chosen-by-size": "chosen for {millions:.1f} million pixels × {photographs} photographs: the most accurate method "
    "({best}) would take {minutes:.0f} core-minutes",
    "near-lights-solved": "Near lights: normals and depth in turn, {rounds} rounds; the last changed the normals by "
    "{degrees:.2f}°. The object lies {height:.0f} pixels above the origin of the positions.",
    "exposure-corrected": "Exposure varied by {span:.0%}: corrected in {count} of {photographs} photographs. Was the "
    "camera on automatic?",
    "mesh-simplified": "{names} simplified from {before:,} to {after:,} triangles, within {tolerance:.2g} pixels of "
    "the full surface.",
    "model-not-converged": "The model stopped at its limit of {iterations} iterations before every pixel met its "
    "tolerance.",
    "surface-not-converged": "{method} stopped after {iterations} iterations before it met its tolerance. The surface "
    "is usable; raise max_iter for the last digits.",
    "material-not-flat": "A material is meant for flat samples such as paper, fabric or stone. This object is not "
    "flat: only {width} × {height} pixels of it are used, and its overall shape is removed.",
    "bad-plugin": "The plugin {name} ({group}) cannot be used: {problem}. Update or uninstall the package it comes "
    "from.",
    # The app
    "other-photographs": "At full size, the photographs used differ from those shown: {names}.",
    "lights-differ": "At full size, the lights differ by up to {degrees:.1f}° from those shown.",
    "mask-differs": "At full size, the mask differs from the one shown by {share:.0%}.",
}
