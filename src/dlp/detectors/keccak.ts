/** Keccak-256 as Ethereum uses it (the padding of 2011, not that of SHA-3), which node:crypto does not offer. */

const ROTATIONS = [1, 3, 6, 10, 15, 21, 28, 36, 45, 55, 2, 14, 27, 41, 56, 8, 25, 43, 62, 18, 39, 61, 20, 44]
const LANES = [10, 7, 11, 17, 18, 3, 5, 16, 8, 21, 24, 4, 15, 23, 19, 13, 12, 2, 20, 14, 22, 9, 6, 1]
const RATE = 136

/** Round constants by the linear feedback shift register of the specification (Keccak reference, 1.2). */
const ROUND_CONSTANTS = ((): Uint32Array => {
  const constants = new Uint32Array(48)
  let register = 1
  for (let round = 0; round < 24; round++) {
    for (let power = 0; power < 7; power++) {
      const position = 2 ** power - 1
      if (register & 1) {
        const half = round * 2 + (position >= 32 ? 1 : 0)
        constants[half] = (constants[half] ?? 0) ^ (1 << (position % 32))
      }
      register = register & 0x80 ? ((register << 1) ^ 0x171) & 0xff : register << 1
    }
  }
  return constants
})()

/** The hash of an ASCII text shorter than 136 characters: 32 bytes. */
export function keccak256(text: string): Uint8Array {
  const block = new Uint8Array(200)
  for (let index = 0; index < text.length && index < RATE - 1; index++) block[index] = text.charCodeAt(index)
  block[Math.min(text.length, RATE - 1)] = 1
  block[RATE - 1] = (block[RATE - 1] ?? 0) | 0x80
  permute(new Uint32Array(block.buffer))
  return block.subarray(0, 32)
}

/** Keccak-f[1600] on 25 lanes, each as two halves, the low one first. */
function permute(state: Uint32Array): void {
  const at = (index: number): number => state[index] ?? 0
  const columns = new Uint32Array(10)
  const row = new Uint32Array(10)
  for (let round = 0; round < 24; round++) {
    for (let half = 0; half < 10; half++) {
      columns[half] = at(half) ^ at(half + 10) ^ at(half + 20) ^ at(half + 30) ^ at(half + 40)
    }
    for (let x = 0; x < 5; x++) mixColumn(state, columns, x)
    rotateLanes(state)
    for (let y = 0; y < 50; y += 10) {
      for (let index = 0; index < 10; index++) row[index] = at(y + index)
      for (let index = 0; index < 10; index++) {
        state[y + index] = (row[index] ?? 0) ^ (~(row[(index + 2) % 10] ?? 0) & (row[(index + 4) % 10] ?? 0))
      }
    }
    state[0] = at(0) ^ (ROUND_CONSTANTS[round * 2] ?? 0)
    state[1] = at(1) ^ (ROUND_CONSTANTS[round * 2 + 1] ?? 0)
  }
}

function mixColumn(state: Uint32Array, columns: Uint32Array, x: number): void {
  const left = ((x + 4) % 5) * 2
  const right = ((x + 1) % 5) * 2
  const low = columns[right] ?? 0
  const high = columns[right + 1] ?? 0
  const mixLow = (columns[left] ?? 0) ^ ((low << 1) | (high >>> 31))
  const mixHigh = (columns[left + 1] ?? 0) ^ ((high << 1) | (low >>> 31))
  for (let index = x * 2; index < 50; index += 10) {
    state[index] = (state[index] ?? 0) ^ mixLow
    state[index + 1] = (state[index + 1] ?? 0) ^ mixHigh
  }
}

function rotateLanes(state: Uint32Array): void {
  let low = state[2] ?? 0
  let high = state[3] ?? 0
  for (let step = 0; step < 24; step++) {
    const lane = (LANES[step] ?? 0) * 2
    const amount = ROTATIONS[step] ?? 0
    const nextLow = state[lane] ?? 0
    const nextHigh = state[lane + 1] ?? 0
    const swapped = amount >= 32
    const first = swapped ? high : low
    const second = swapped ? low : high
    const shift = amount % 32
    state[lane] = shift === 0 ? first : (first << shift) | (second >>> (32 - shift))
    state[lane + 1] = shift === 0 ? second : (second << shift) | (first >>> (32 - shift))
    low = nextLow
    high = nextHigh
  }
}
