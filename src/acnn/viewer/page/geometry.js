// Camera, rays and normals of the 3D view.

const FIELD_OF_VIEW = (26 * Math.PI) / 180;
const UP = { x: [0, 1, 0, -1, 0, 0, 0, 0, 1], y: [1, 0, 0, 0, 1, 0, 0, 0, 1], z: [1, 0, 0, 0, 0, -1, 0, 1, 0] };

// camera: {yaw, pitch, zoom, pan: [x, y], half: [x, y, z] half the largest extents of shapes that stand upright}
// up: the axis of a shape's coordinates that points up
function rotation(camera, up) {
  const ca = Math.cos(camera.yaw),
    sa = Math.sin(camera.yaw),
    cb = Math.cos(camera.pitch),
    sb = Math.sin(camera.pitch);
  const view = [ca, sb * sa, -cb * sa, 0, cb, sb, sa, -sb * ca, cb * ca];
  return product(view, UP[up]);
}

function frame(camera, aspect, zoom = 1) {
  const half = camera.half;
  const side = Math.max(half[0], half[2]);
  const need = Math.max(half[1] * 1.14, (side * 1.1) / aspect, 1e-9) / camera.zoom / zoom;
  const depth = Math.hypot(...half),
    distance = need / Math.tan(FIELD_OF_VIEW / 2) + side * 0.6;
  const near = Math.max(distance - 2 * depth, distance * 0.01),
    far = distance + 2 * depth,
    s = 1 / Math.tan(FIELD_OF_VIEW / 2);
  return {
    projection: new Float32Array([
      s / aspect,
      0,
      0,
      0,
      0,
      s,
      0,
      0,
      0,
      0,
      (near + far) / (near - far),
      -1,
      0,
      0,
      (2 * near * far) / (near - far),
      0,
    ]),
    offset: [camera.pan[0], camera.pan[1], -distance],
    pixel: height => (2 * distance * Math.tan(FIELD_OF_VIEW / 2)) / height,
  };
}

// Half extents of a shape once it stands upright
function upright([x, y, z], up) {
  return { x: [y, x, z], y: [x, y, z], z: [x, z, y] }[up];
}

// Product of 3 x 3 matrices in column-major order
function product(a, b) {
  const out = new Float32Array(9);
  for (let c = 0; c < 3; c++)
    for (let r = 0; r < 3; r++) for (let k = 0; k < 3; k++) out[3 * c + r] += a[3 * k + r] * b[3 * c + k];
  return out;
}

// Intersection of a ray and a triangle (Moller and Trumbore 1997): [distance, second weight, third weight], or null.
function meet(from, along, p, a, b, c) {
  const ux = p[b] - p[a],
    uy = p[b + 1] - p[a + 1],
    uz = p[b + 2] - p[a + 2];
  const vx = p[c] - p[a],
    vy = p[c + 1] - p[a + 1],
    vz = p[c + 2] - p[a + 2];
  const hx = along[1] * vz - along[2] * vy,
    hy = along[2] * vx - along[0] * vz,
    hz = along[0] * vy - along[1] * vx;
  const det = ux * hx + uy * hy + uz * hz;
  if (Math.abs(det) < 1e-20) return null;
  const sx = from[0] - p[a],
    sy = from[1] - p[a + 1],
    sz = from[2] - p[a + 2];
  const v = (sx * hx + sy * hy + sz * hz) / det;
  if (v < 0 || v > 1) return null;
  const qx = sy * uz - sz * uy,
    qy = sz * ux - sx * uz,
    qz = sx * uy - sy * ux;
  const w = (along[0] * qx + along[1] * qy + along[2] * qz) / det;
  if (w < 0 || v + w > 1) return null;
  const t = (vx * qx + vy * qy + vz * qz) / det;
  return t > 0 ? [t, v, w] : null;
}

function vertexNormals(positions, faces) {
  const normals = new Float32Array(positions.length),
    p = positions;
  for (let k = 0; k < faces.length; k += 3) {
    const a = 3 * faces[k],
      b = 3 * faces[k + 1],
      c = 3 * faces[k + 2];
    const ux = p[b] - p[a],
      uy = p[b + 1] - p[a + 1],
      uz = p[b + 2] - p[a + 2];
    const vx = p[c] - p[a],
      vy = p[c + 1] - p[a + 1],
      vz = p[c + 2] - p[a + 2];
    const n = [uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx];
    for (const i of [a, b, c]) for (let d = 0; d < 3; d++) normals[i + d] += n[d];
  }
  for (let i = 0; i < normals.length; i += 3) {
    const length = Math.hypot(normals[i], normals[i + 1], normals[i + 2]) || 1;
    for (let d = 0; d < 3; d++) normals[i + d] /= length;
  }
  return normals;
}

// A unit sphere of rings and sectors.
function ball(rings = 12, sectors = 20) {
  const positions = [],
    faces = [];
  for (let i = 0; i <= rings; i++)
    for (let j = 0; j <= sectors; j++) {
      const a = (Math.PI * i) / rings,
        b = (2 * Math.PI * j) / sectors;
      positions.push(Math.sin(a) * Math.cos(b), Math.cos(a), -Math.sin(a) * Math.sin(b));
      const k = i * (sectors + 1) + j;
      if (i < rings && j < sectors) faces.push(k, k + sectors + 1, k + 1, k + 1, k + sectors + 1, k + sectors + 2);
    }
  return [new Float32Array(positions), faces];
}
