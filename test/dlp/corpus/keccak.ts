/**
 * Keccak-256 with the padding of its first submission, which Ethereum uses and Node does not offer. Round constants and
 * rotations are computed as FIPS 202 section 3.2 defines them.
 */
const LANE = (1n << 64n) - 1n
const RATE = 136

const rotate = (lane: bigint, by: number): bigint =>
  by === 0 ? lane : ((lane << BigInt(by)) | (lane >> BigInt(64 - by))) & LANE

const ROTATIONS = rotations()
const ROUND_CONSTANTS = roundConstants()

export function keccak256(message: Uint8Array): Uint8Array {
  const padded = new Uint8Array(Math.floor(message.length / RATE + 1) * RATE)
  padded.set(message)
  padded[message.length] = 0x01
  padded[padded.length - 1] = (padded[padded.length - 1] ?? 0) | 0x80
  const view = new DataView(padded.buffer)
  let state: bigint[] = new Array<bigint>(25).fill(0n)
  for (let block = 0; block < padded.length; block += RATE) {
    for (let lane = 0; lane < RATE / 8; lane++) {
      state[lane] = (state[lane] ?? 0n) ^ view.getBigUint64(block + lane * 8, true)
    }
    for (const constant of ROUND_CONSTANTS) state = round(state, constant)
  }
  const digest = new DataView(new ArrayBuffer(32))
  for (let lane = 0; lane < 4; lane++) digest.setBigUint64(lane * 8, state[lane] ?? 0n, true)
  return new Uint8Array(digest.buffer)
}

function round(state: readonly bigint[], constant: bigint): bigint[] {
  const lane = (x: number, y: number): bigint => state[(x % 5) + 5 * (y % 5)] ?? 0n
  const parity = [0, 1, 2, 3, 4].map((x) => lane(x, 0) ^ lane(x, 1) ^ lane(x, 2) ^ lane(x, 3) ^ lane(x, 4))
  const moved = new Array<bigint>(25).fill(0n)
  for (let x = 0; x < 5; x++) {
    const mixed = (parity[(x + 4) % 5] ?? 0n) ^ rotate(parity[(x + 1) % 5] ?? 0n, 1)
    for (let y = 0; y < 5; y++) {
      moved[y + 5 * ((2 * x + 3 * y) % 5)] = rotate(lane(x, y) ^ mixed, ROTATIONS[x + 5 * y] ?? 0)
    }
  }
  return moved.map((own, index) => {
    const row = index - (index % 5)
    const next = moved[row + ((index + 1) % 5)] ?? 0n
    const second = moved[row + ((index + 2) % 5)] ?? 0n
    return own ^ (~next & LANE & second) ^ (index === 0 ? constant : 0n)
  })
}

function rotations(): number[] {
  const offsets = new Array<number>(25).fill(0)
  let [x, y] = [1, 0]
  for (let step = 0; step < 24; step++) {
    offsets[x + 5 * y] = (((step + 1) * (step + 2)) / 2) % 64
    ;[x, y] = [y, (2 * x + 3 * y) % 5]
  }
  return offsets
}

function roundConstants(): bigint[] {
  let register = 1
  const nextBit = (): boolean => {
    const bit = (register & 1) === 1
    register <<= 1
    if (register & 0x100) register ^= 0x171
    return bit
  }
  return Array.from({ length: 24 }, () => {
    let constant = 0n
    for (let power = 0; power <= 6; power++) if (nextBit()) constant |= 1n << BigInt(2 ** power - 1)
    return constant
  })
}
