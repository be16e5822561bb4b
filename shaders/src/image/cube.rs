//! Cube maps: selects the face of a direction, and the texel across a face's edge.

/// A position on a face.
#[derive(Clone, Copy, Debug)]
pub(super) struct FacePosition {
    pub(super) face: u32,
    /// Face coordinates, 0 to 1.
    pub(super) at: [f32; 2],
}

/// Components of a direction that are s, t and the major axis of each face, with their signs (Vulkan, "Cube Map Face
/// Selection").
const AXES: [[(usize, f32); 3]; 6] = [
    [(2, -1.0), (1, -1.0), (0, 1.0)],
    [(2, 1.0), (1, -1.0), (0, -1.0)],
    [(0, 1.0), (2, 1.0), (1, 1.0)],
    [(0, 1.0), (2, -1.0), (1, -1.0)],
    [(0, 1.0), (1, -1.0), (2, 1.0)],
    [(0, -1.0), (1, -1.0), (2, -1.0)],
];

fn face_of(direction: [f32; 3]) -> usize {
    let [x, y, z] = direction.map(f32::abs);
    let axis = if z >= x && z >= y {
        2
    } else if y >= x {
        1
    } else {
        0
    };
    2 * axis + usize::from(direction[axis].is_sign_negative())
}

/// Face and position that a direction points to.
pub(super) fn project(direction: [f32; 3]) -> FacePosition {
    let face = face_of(direction);
    let [(s, s_sign), (t, t_sign), (major, _)] = AXES[face];
    let length = direction[major].abs();
    let at = [s_sign * direction[s], t_sign * direction[t]].map(|c| 0.5 * (c / length) + 0.5);
    FacePosition { face: face as u32, at }
}

/// Derivatives on the face for derivatives of a direction ("Cube Map Derivative Transformation").
pub(super) fn derivatives(direction: [f32; 3], change: [f32; 3]) -> [f32; 2] {
    let [(s, s_sign), (t, t_sign), (major, major_sign)] = AXES[face_of(direction)];
    let length = direction[major].abs();
    let along = major_sign * change[major];
    [(s, s_sign), (t, t_sign)].map(|(axis, sign)| {
        let (c, dc) = (sign * direction[axis], sign * change[axis]);
        0.5 * (length * dc - c * along) / (length * length)
    })
}

/// The texel `(i, j)` of a face of `size` by `size` texels. At most one step across an edge it lies on the adjacent
/// face; across a corner there is none.
pub(super) fn seamless(face: u32, i: i32, j: i32, size: u32) -> Option<(u32, u32, u32)> {
    let n = i64::from(size);
    let inside = |c: i32| (0..n).contains(&i64::from(c));
    if inside(i) && inside(j) {
        return Some((face, i.cast_unsigned(), j.cast_unsigned()));
    }
    if !inside(i) && !inside(j) {
        return None;
    }
    // Twice the distance from the face's centre, so that texel centres are integers.
    let twice = |c: i32| 2 * i64::from(c) + 1 - n;
    let [(s, s_sign), (t, t_sign), (major, major_sign)] = AXES[face as usize % 6];
    let mut point = [0; 3];
    point[s] = sign(s_sign) * twice(i);
    point[t] = sign(t_sign) * twice(j);
    // One step onto the adjacent face: the major axis loses the part of the coordinate that exceeds the edge.
    point[major] = sign(major_sign) * (n - 1);
    let beyond = if inside(i) { t } else { s };
    point[beyond] = point[beyond].signum() * n;
    let other = 2 * beyond + usize::from(point[beyond] < 0);
    let [(s, s_sign), (t, t_sign), _] = AXES[other];
    let back = |axis: usize, by: f32| ((sign(by) * point[axis] + n - 1) / 2).clamp(0, n - 1) as u32;
    Some((other as u32, back(s, s_sign), back(t, t_sign)))
}

fn sign(of: f32) -> i64 {
    of as i64
}
