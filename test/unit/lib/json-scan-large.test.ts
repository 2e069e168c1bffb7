import { describe, expect, it } from 'vitest'
import { OWN_DATA } from '../../../src/gateway/protocols/text-fields.ts'
import { scanJson } from '../../../src/lib/json-scan.ts'
import { LONGEST_NAME_BYTES } from '../../../src/lib/json-tokens.ts'
import { type JsonPath, JsonSyntaxError } from '../../../src/lib/json-visitor.ts'
import { randomJson } from './random-json.ts'
import { SeededRandom } from './seeded-random.ts'

const encoder = new TextEncoder()

/** The bytes in a large body: not at the beginning of their buffer. */
function resizable(bytes: Uint8Array): Uint8Array {
  const buffer = new ArrayBuffer(0, { maxByteLength: bytes.length + 100 })
  buffer.resize(bytes.length + 7)
  const copy = new Uint8Array(buffer, 7, bytes.length)
  copy.set(bytes)
  return copy
}

/** All events of a scan, in order, up to its end or its error. */
function told(bytes: Uint8Array): unknown[] {
  const events: unknown[] = []
  try {
    scanJson(bytes, {
      valueDepth: 99,
      watched: OWN_DATA,
      string: (path, ...rest) => events.push(['string', path.join('/'), ...rest]),
      value: (path, ...rest) => events.push(['value', path.join('/'), ...rest]),
    })
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error
    events.push(error.message)
  }
  return events
}

describe('bytes in a resizable buffer', () => {
  /** Texts of a few windows, so that what lies on the border of two differs from seed to seed. */
  function longJson(random: SeededRandom): Uint8Array {
    const parts: string[] = []
    for (let length = 0; length < 50_000; ) {
      const part = random.chance(0.01)
        ? JSON.stringify('x\\'.repeat(random.below(20_000)))
        : randomJson(random, 4)
      parts.push(part)
      length += part.length
    }
    return encoder.encode(`[${parts.join(',')}]`)
  }

  it('are read as others are, wherever tokens lie', () => {
    let events = 0
    for (let seed = 1; seed <= 20; seed++) {
      const bytes = longJson(new SeededRandom(seed))
      const expected = told(bytes)
      events += expected.length
      if (JSON.stringify(told(resizable(bytes))) !== JSON.stringify(expected)) expect.fail(`seed ${seed}`)
    }
    expect(events).toBeGreaterThan(5_000)
  })

  it('are refused as others are, wherever they break off', () => {
    const random = new SeededRandom(1)
    const bytes = longJson(random)
    for (let count = 0; count < 30; count++) {
      const cut = bytes.slice(0, random.below(bytes.length))
      if (count % 2 === 0) cut[random.below(cut.length)] = random.below(256)
      expect(told(resizable(cut)).at(-1)).toEqual(told(cut).at(-1))
    }
  })

  it.each(['true', 'null', '-12.5e+10', '"\\u0041\\n"', '{"\\u0041b":1}', '[[]]', '"é漢"'])(
    'hold %s across every border of windows',
    (token) => {
      for (let before = 16_384 - 20; before <= 16_384; before++) {
        const bytes = encoder.encode(`[${' '.repeat(before)}${token},${token}]`)
        expect(told(resizable(bytes))).toEqual(told(bytes))
      }
    },
  )
})

describe('names', () => {
  const namesOf = (text: string) => {
    const names: Array<string | number | undefined> = []
    scanJson(encoder.encode(text), { value: (path) => names.push(path[0]) })
    return names.slice(0, -1)
  }

  it('up to the bound are told whole, longer ones by beginning and place', () => {
    const longest = 'n'.repeat(LONGEST_NAME_BYTES)
    expect(namesOf(`{"${longest}":0}`)).toEqual([longest])
    const [first, second] = namesOf(`{"${longest}n":0,"${longest}n":0}`)
    expect(first).toMatch(/^n{64}… at byte 2$/)
    expect(second).not.toBe(first)
  })

  it.each(['漢', '\\u65e5', '\\n', '\u{1f600}', 'ﬃ'])('of 5 MB of %s take no memory of that size', (unit) => {
    const length = 5_000_000 - (5_000_000 % encoder.encode(unit).length)
    const bytes = Buffer.concat([Buffer.from('{"a":{"'), Buffer.alloc(length, unit), Buffer.from('":"x"}}')])
    let longest = 0
    scanJson(bytes, {
      valueDepth: 9,
      string: (path) => {
        longest = Math.max(longest, ...path.map((part) => String(part).length))
      },
    })
    expect(longest).toBeGreaterThan(0)
    expect(longest).toBeLessThan(200)
  })
})

describe('what is told of a string beside its path', () => {
  const NAMES = ['input', 'properties', 'data', 'url', 'id', 'source', 'text', 'inputs']

  /** A value whose names are the ones that matter. */
  function value(random: SeededRandom, depth: number): unknown {
    const kind = depth === 0 ? 0 : random.below(3)
    if (kind === 0) return random.pick(['x', 'data:image/png;base64,AAAA', 'QUJD'.repeat(20)])
    const parts = Array.from({ length: random.below(4) }, () => value(random, depth - 1))
    return kind === 1 ? parts : Object.fromEntries(parts.map((part) => [random.pick(NAMES), part]))
  }

  const lastName = (path: JsonPath) => path.findLast((part) => typeof part === 'string') ?? ''

  it('is what a search through the path finds', () => {
    let strings = 0
    for (let seed = 1; seed <= 2_000; seed++) {
      const bytes = encoder.encode(JSON.stringify(value(new SeededRandom(seed), 6)))
      scanJson(bytes, {
        watched: OWN_DATA,
        string(path, _start, _end, name, within) {
          strings++
          const found = { name: lastName(path), within: path.some((part) => OWN_DATA.has(String(part))) }
          if (name !== found.name || within !== found.within) expect.fail(`seed ${seed}: ${path.join('/')}`)
        },
      })
    }
    expect(strings).toBeGreaterThan(2_000)
  })
})
