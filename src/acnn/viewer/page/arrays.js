// Arrays of the page: unpacking, and transfer along maps.

const data = JSON.parse(by("data").textContent);

function unpack(packed) {
  const text = atob(packed.data),
    bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return {
    u1: bytes,
    u2: new Uint16Array(bytes.buffer, 0, bytes.length >> 1),
    u4: bytes.length % 4 ? null : new Uint32Array(bytes.buffer),
  }[packed.type];
}

function values(packed) {
  return Float32Array.from(unpack(packed), v => (v === 65535 ? NaN : v * packed.scale));
}

// A shape centred at the origin: {positions, faces, half: half its extents, count: of vertices}
function unpackShape(given) {
  const numbers = unpack(given.vertices),
    positions = new Float32Array(numbers.length);
  const low = [Infinity, Infinity, Infinity],
    high = [-Infinity, -Infinity, -Infinity];
  for (let i = 0; i < numbers.length; i++) {
    positions[i] = numbers[i] * given.step;
    low[i % 3] = Math.min(low[i % 3], positions[i]);
    high[i % 3] = Math.max(high[i % 3], positions[i]);
  }
  for (let i = 0; i < positions.length; i++) positions[i] -= (low[i % 3] + high[i % 3]) / 2;
  return {
    positions,
    faces: unpack(given.faces),
    half: [0, 1, 2].map(d => (high[d] - low[d]) / 2),
    count: positions.length / 3,
  };
}

function known(match, limit) {
  return match < limit;
}

// Vertices that a map sends to a vertex
function arriving(map, target) {
  const found = [];
  for (let v = 0; v < map.length; v++) if (map[v] === target) found.push(v);
  return found;
}

// Mean of values over the vertices that a map sends to each vertex of a shape; gaps take the mean of their neighbours.
function transferred(numbers, map, shape) {
  const n = shape.count,
    f = shape.faces,
    sum = new Float64Array(n),
    count = new Float64Array(n);
  numbers.forEach((value, v) => {
    if (!Number.isNaN(value) && known(map[v], n)) {
      sum[map[v]] += value;
      count[map[v]] += 1;
    }
  });
  for (let round = 0; round < 4; round++) {
    const moreSum = new Float64Array(n),
      moreCount = new Float64Array(n);
    for (let k = 0; k < f.length; k += 3)
      for (let a = 0; a < 3; a++)
        for (let b = 0; b < 3; b++) {
          if (!count[f[k + a]] && count[f[k + b]]) {
            moreSum[f[k + a]] += sum[f[k + b]] / count[f[k + b]];
            moreCount[f[k + a]] += 1;
          }
        }
    for (let v = 0; v < n; v++)
      if (!count[v] && moreCount[v]) {
        sum[v] = moreSum[v];
        count[v] = moreCount[v];
      }
  }
  return Float32Array.from(sum, (s, v) => (count[v] ? s / count[v] : NaN));
}
