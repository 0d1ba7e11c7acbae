// Shaded meshes with vertex colours, drawn with WebGL 2 into several cells of one canvas with one camera.

const VERTEX_SHADER = `#version 300 es
layout(location = 0) in vec3 position;
layout(location = 1) in vec3 normal;
layout(location = 2) in vec3 color;
layout(location = 3) in vec3 coordinate;
uniform mat4 projection;
uniform mat3 turn;
uniform vec3 offset;
uniform float size;
uniform vec3 middle;
out vec3 seenNormal, seenPosition, ownColor, place;
void main() {
  vec3 seen = turn * (position * size + middle) + offset;
  seenNormal = turn * normal;
  seenPosition = seen;
  ownColor = color;
  place = coordinate;
  gl_Position = projection * vec4(seen, 1.0);
}`;

// Light falls from the viewer's upper left, softly from the right, and from above; colours are blended in linear RGB.
// pattern 1: a checkerboard of cubes with sides `square` in the vertices' coordinates; 2: an image at texture coordinates
const FRAGMENT_SHADER = `#version 300 es
precision highp float;
in vec3 seenNormal, seenPosition, ownColor, place;
uniform vec4 paint;
uniform float painted, twoSided, square;
uniform int pattern;
uniform sampler2D image;
out vec4 result;
void main() {
  vec3 n = normalize(seenNormal);
  vec3 eye = normalize(-seenPosition);
  bool inside = twoSided > 0.5 ? dot(n, eye) < 0.0 : !gl_FrontFacing;
  if (inside) n = -n;
  vec3 own = ownColor;
  if (pattern == 1) {
    vec3 cell = floor(place / square);
    own = mod(cell.x + cell.y + cell.z, 2.0) < 0.5 ? 0.5 * own : 0.45 + 0.55 * own;
  } else if (pattern == 2) own = texture(image, place.xy).rgb;
  vec3 albedo = pow(mix(own, paint.rgb, painted), vec3(2.2));
  float key = max(dot(n, normalize(vec3(-0.45, 0.55, 0.75))), 0.0);
  float fill = max(dot(n, normalize(vec3(0.8, 0.1, 0.45))), 0.0);
  vec3 light = vec3(0.20) + 0.14 * (0.5 + 0.5 * n.y) + 0.72 * key * vec3(1.0, 0.985, 0.96) + 0.20 * fill * vec3(0.94, 0.97, 1.0);
  float gloss = pow(max(dot(n, normalize(normalize(vec3(-0.45, 0.55, 0.75)) + eye)), 0.0), 28.0) * 0.07;
  float rim = pow(1.0 - max(dot(n, eye), 0.0), 3.0) * 0.06;
  vec3 lit = albedo * light + gloss + rim * albedo;
  if (inside && twoSided < 0.5) lit *= 0.55;
  if (painted > 0.5) lit = albedo * (0.7 + 0.4 * key);
  result = vec4(pow(lit, vec3(1.0 / 2.2)), 1.0) * paint.a;
}`;

const UNIFORMS = ["projection", "turn", "offset", "size", "middle", "paint", "painted", "twoSided", "square", "pattern"];

class MeshView {
  constructor(canvas) {
    this.canvas = canvas;
    this.gl = canvas.getContext("webgl2", { antialias: true, alpha: true, premultipliedAlpha: true });
    if (!this.gl) throw new Error("no WebGL 2");
    this.meshes = [];
    this.ball = this.add(...ball());
    this.start();
  }

  // Compile and upload; called again after a lost WebGL context.
  start() {
    const gl = this.gl;
    const program = gl.createProgram();
    for (const [kind, text] of [
      [gl.VERTEX_SHADER, VERTEX_SHADER],
      [gl.FRAGMENT_SHADER, FRAGMENT_SHADER],
    ]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS) && !gl.isContextLost())
      throw new Error(gl.getProgramInfoLog(program));
    gl.useProgram(program);
    this.at = {};
    for (const name of UNIFORMS) {
      this.at[name] = gl.getUniformLocation(program, name);
    }
    gl.enable(gl.DEPTH_TEST);
    gl.enable(gl.SCISSOR_TEST);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    for (const mesh of this.meshes) this.upload(mesh);
    this.blank = this.texture(new ImageData(1, 1));
  }

  // positions: Float32Array (n * 3) around the origin; faces: array of vertex indices (m * 3)
  // more: {normals, coordinates: Float32Array (n * 3) for a pattern, picture: an image element for pattern 2}
  add(positions, faces, twoSided = false, more = {}) {
    const mesh = {
      positions,
      faces,
      twoSided,
      normals: more.normals || vertexNormals(positions, faces),
      colors: new Uint8Array(positions.length).fill(200),
      ...more,
    };
    this.meshes.push(mesh);
    if (this.at) this.upload(mesh);
    return mesh;
  }

  upload(mesh) {
    const gl = this.gl;
    mesh.vao = gl.createVertexArray();
    gl.bindVertexArray(mesh.vao);
    const fill = (slot, data, type, normalised) => {
      const buffer = gl.createBuffer();
      gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
      gl.bufferData(gl.ARRAY_BUFFER, data, gl.STATIC_DRAW);
      gl.enableVertexAttribArray(slot);
      gl.vertexAttribPointer(slot, 3, type, normalised, 0, 0);
      return buffer;
    };
    mesh.positionBuffer = fill(0, mesh.positions, gl.FLOAT, false);
    mesh.normalBuffer = fill(1, mesh.normals, gl.FLOAT, false);
    mesh.colorBuffer = fill(2, mesh.colors, gl.UNSIGNED_BYTE, true);
    if (mesh.coordinates) fill(3, mesh.coordinates, gl.FLOAT, false);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, Uint32Array.from(mesh.faces), gl.STATIC_DRAW);
    gl.bindVertexArray(null);
    if (mesh.picture) mesh.texture = this.texture(mesh.picture);
  }

  texture(picture) {
    const gl = this.gl,
      texture = gl.createTexture();
    gl.bindTexture(gl.TEXTURE_2D, texture);
    gl.pixelStorei(gl.UNPACK_FLIP_Y_WEBGL, true);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, gl.RGBA, gl.UNSIGNED_BYTE, picture);
    gl.generateMipmap(gl.TEXTURE_2D);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.LINEAR_MIPMAP_LINEAR);
    return texture;
  }

  paint(mesh, colors) {
    mesh.colors = colors;
    this.gl.bindBuffer(this.gl.ARRAY_BUFFER, mesh.colorBuffer);
    this.gl.bufferData(this.gl.ARRAY_BUFFER, colors, this.gl.STATIC_DRAW);
  }

  // New positions of the vertices, in the same order
  move(mesh, positions) {
    const gl = this.gl;
    mesh.positions = positions;
    mesh.normals = vertexNormals(positions, mesh.faces);
    for (const [buffer, data] of [
      [mesh.positionBuffer, mesh.positions],
      [mesh.normalBuffer, mesh.normals],
    ]) {
      gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
      gl.bufferData(gl.ARRAY_BUFFER, data, gl.STATIC_DRAW);
    }
  }

  // cells: [{rect: {left, top, width, height} in CSS pixels within the canvas, mesh, up, zoom, markers: [{position, color}],
  //   pattern: 0 or as in the shader, square}]
  draw(cells, camera) {
    const gl = this.gl,
      scale = Math.min(window.devicePixelRatio || 1, 2);
    const width = Math.max(1, Math.round(this.canvas.clientWidth * scale)),
      height = Math.max(1, Math.round(this.canvas.clientHeight * scale));
    if (this.canvas.width !== width || this.canvas.height !== height) {
      this.canvas.width = width;
      this.canvas.height = height;
    }
    gl.disable(gl.SCISSOR_TEST);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.enable(gl.SCISSOR_TEST);
    for (const cell of cells) {
      const { left, top, width: w, height: h } = cell.rect;
      if (w < 2 || h < 2) continue;
      const box = [left * scale, height - (top + h) * scale, w * scale, h * scale].map(Math.round);
      gl.viewport(...box);
      gl.scissor(...box);
      const view = frame(camera, w / h, cell.zoom);
      gl.uniformMatrix3fv(this.at.turn, false, rotation(camera, cell.up));
      gl.uniformMatrix4fv(this.at.projection, false, view.projection);
      gl.uniform3fv(this.at.offset, view.offset);
      gl.uniform1i(this.at.pattern, cell.pattern || 0);
      gl.uniform1f(this.at.square, cell.square || 1);
      gl.bindTexture(gl.TEXTURE_2D, cell.mesh.texture || this.blank);
      this.drawMesh(cell.mesh, 1, [0, 0, 0]);
      gl.uniform1i(this.at.pattern, 0);
      for (const marker of cell.markers || []) {
        // Faint behind the surface; with a white rim where visible.
        const size = (marker.size || 1) * view.pixel(h) * 6;
        gl.enable(gl.BLEND);
        gl.disable(gl.DEPTH_TEST);
        this.drawMesh(this.ball, size, marker.position, [...marker.color, 0.45]);
        gl.disable(gl.BLEND);
        gl.enable(gl.DEPTH_TEST);
        gl.depthMask(false);
        this.drawMesh(this.ball, size * 1.35, marker.position, [1, 1, 1, 1]);
        gl.depthMask(true);
        this.drawMesh(this.ball, size, marker.position, [...marker.color, 1]);
      }
    }
  }

  drawMesh(mesh, size, middle, paint) {
    const gl = this.gl;
    gl.uniform1f(this.at.size, size);
    gl.uniform3fv(this.at.middle, middle);
    gl.uniform4fv(this.at.paint, paint || [0, 0, 0, 1]);
    gl.uniform1f(this.at.painted, paint ? 1 : 0);
    gl.uniform1f(this.at.twoSided, mesh.twoSided ? 1 : 0);
    gl.bindVertexArray(mesh.vao);
    gl.drawElements(gl.TRIANGLES, mesh.faces.length, gl.UNSIGNED_INT, 0);
  }

  // Where a position is seen, in CSS pixels within the canvas
  project(cell, camera, position) {
    const { left, top, width, height } = cell.rect,
      view = frame(camera, width / height, cell.zoom),
      turn = rotation(camera, cell.up);
    const [x, y, z] = [0, 1, 2].map(
      i => turn[i] * position[0] + turn[3 + i] * position[1] + turn[6 + i] * position[2] + view.offset[i],
    );
    const slope = Math.tan(FIELD_OF_VIEW / 2);
    return [left + (width / 2) * (1 + (x * height) / (-z * slope * width)), top + (height / 2) * (1 - y / (-z * slope))];
  }

  // The ray from the eye through (x, y) CSS pixels within a cell, in coordinates of its mesh: [from, along]
  ray(cell, camera, x, y) {
    const { width, height } = cell.rect,
      view = frame(camera, width / height, cell.zoom),
      turn = rotation(camera, cell.up);
    const slope = Math.tan(FIELD_OF_VIEW / 2);
    const ray = [(((2 * x) / width - 1) * slope * width) / height, (1 - (2 * y) / height) * slope, -1];
    // the transpose is the inverse rotation
    const back = v => [0, 1, 2].map(i => turn[3 * i] * v[0] + turn[3 * i + 1] * v[1] + turn[3 * i + 2] * v[2]);
    return [back(view.offset.map(c => -c)), back(ray)];
  }

  // The vertex nearest to the visible point at (x, y) CSS pixels within a cell, of those of its face, or -1; pickMesh:
  // the mesh with the vertices of the shape.
  pick(cell, camera, x, y) {
    const [from, along] = this.ray(cell, camera, x, y);
    const { positions: p, faces: f } = cell.pickMesh || cell.mesh;
    let best = Infinity,
      face = -1;
    for (let k = 0; k < f.length; k += 3) {
      const hit = meet(from, along, p, 3 * f[k], 3 * f[k + 1], 3 * f[k + 2]);
      if (hit && hit[0] < best) {
        best = hit[0];
        face = k;
      }
    }
    if (face < 0) return -1;
    const gaps = [0, 1, 2].map(i =>
      Math.hypot(...[0, 1, 2].map(d => from[d] + best * along[d] - p[3 * f[face + i] + d])),
    );
    return f[face + gaps.indexOf(Math.min(...gaps))];
  }
}
