import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { scanJson } from '../../../src/lib/json-scan.ts'
import { decodeString } from '../../../src/lib/json-string.ts'
import {
  type JsonKind,
  JsonSyntaxError,
  type JsonVisitor,
  MAXIMUM_DEPTH,
} from '../../../src/lib/json-visitor.ts'
import { PROPERTY_RUNS } from './property-runs.ts'
import { randomJson } from './random-json.ts'
import { SeededRandom } from './seeded-random.ts'

const encoder = new TextEncoder()
const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const lenient = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true })

const scan = (text: string, visitor: JsonVisitor = {}) => scanJson(encoder.encode(text), visitor)

function accepts(bytes: Uint8Array): boolean {
  try {
    scanJson(bytes, {})
    return true
  } catch (error) {
    if (error instanceof JsonSyntaxError) return false
    throw error
  }
}

/** Result of JSON.parse for the same bytes; null if they are not UTF-8, which JSON.parse does not check. */
function parseAccepts(bytes: Uint8Array): boolean | null {
  let text: string
  try {
    text = strict.decode(bytes)
  } catch {
    return null
  }
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** Whether a text is JSON for JSON.parse, or ended before anything was wrong. */
function mayGoOn(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch (error) {
    const [, position] = /at position (\d+)/.exec(String(error)) ?? []
    return Number(position) >= text.length || String(error).includes('Unexpected end')
  }
}

interface Told {
  path: Array<string | number>
  kind: JsonKind
  start: number
  end: number
  memberStart: number
}

/** All events of a visitor, with their paths copied. */
function record(bytes: Uint8Array, valueDepth: number) {
  const values: Told[] = []
  const strings: Array<{ path: Array<string | number>; start: number; end: number }> = []
  scanJson(bytes, {
    valueDepth,
    string: (path, start, end) => strings.push({ path: [...path], start, end }),
    value: (path, kind, start, end, memberStart) =>
      values.push({ path: [...path], kind, start, end, memberStart }),
  })
  return { values, strings }
}

const kindOf = (value: unknown): JsonKind =>
  value === null ? 'null' : Array.isArray(value) ? 'array' : (typeof value as JsonKind)

/**
 * Rebuilds the tree from events alone: every value is parsed from its own range, and containers are checked against the
 * earlier values under their path.
 */
function checkAgainstParse(bytes: Uint8Array): void {
  const { values, strings } = record(bytes, Number.POSITIVE_INFINITY)
  const slice = (start: number, end: number) => lenient.decode(bytes.subarray(start, end))
  const children = new Map<string, Told[]>()
  const stringValues: typeof strings = []
  for (const value of values) {
    const parsed = JSON.parse(slice(value.start, value.end))
    expect(kindOf(parsed)).toBe(value.kind)
    const key = JSON.stringify(value.path)
    const own = children.get(key) ?? []
    children.delete(key)
    const names = own.map((child) => child.path.at(-1))
    if (value.kind === 'array') {
      expect(names).toEqual([...parsed.keys()])
      for (const child of own) expect(child.memberStart).toBe(child.start)
    } else if (value.kind === 'object') {
      expect(new Set(names)).toEqual(new Set(Object.keys(parsed)))
      for (const child of own) {
        expect(JSON.parse(`{${slice(child.memberStart, child.end)}}`)).toEqual(
          Object.fromEntries([[child.path.at(-1), JSON.parse(slice(child.start, child.end))]]),
        )
      }
    } else {
      expect(own).toEqual([])
      if (value.kind === 'string') {
        expect(decodeString(bytes, value.start + 1, value.end - 1)).toBe(parsed)
        stringValues.push({ path: value.path, start: value.start + 1, end: value.end - 1 })
      }
    }
    if (value.path.length > 0) {
      const parent = JSON.stringify(value.path.slice(0, -1))
      children.set(parent, [...(children.get(parent) ?? []), value])
    }
  }
  expect(children.size).toBe(0)
  expect(values.at(-1)?.path).toEqual([])
  expect(strings).toEqual(stringValues)
}

describe('scanJson beside JSON.parse', () => {
  it('tells kinds, ranges, paths and strings of random JSON as JSON.parse reads them', () => {
    for (let seed = 1; seed <= PROPERTY_RUNS * 8; seed++) {
      const bytes = encoder.encode(randomJson(new SeededRandom(seed), 5))
      try {
        checkAgainstParse(bytes)
      } catch (error) {
        throw new Error(`seed ${seed}: ${lenient.decode(bytes)}`, { cause: error })
      }
    }
  })

  it('accepts and refuses what JSON.parse does, after any few changes of bytes', () => {
    const structure = [...encoder.encode('{}[],:"\\u0123456789abcdefE+-. \n\t\r\x00\x0b\x1f\x7ftrufalsn/')]
    const seen = { accepted: 0, refused: 0, notUtf8: 0 }
    for (let seed = 1; seed <= PROPERTY_RUNS * 30; seed++) {
      const random = new SeededRandom(seed)
      const bytes = mutate(random, encoder.encode(randomJson(random, 3)), structure)
      const expected = parseAccepts(bytes)
      if (expected === null) {
        seen.notUtf8++
        accepts(bytes)
      } else {
        seen[expected ? 'accepted' : 'refused']++
        const actual = accepts(bytes)
        if (actual !== expected)
          expect.fail(`seed ${seed}: scan ${actual}, parse ${expected}: ${lenient.decode(bytes)}`)
      }
    }
    // The generator is worth something only while both outcomes are common.
    expect(Math.min(seen.accepted, seen.refused, seen.notUtf8)).toBeGreaterThan(PROPERTY_RUNS * 0.75)
  })

  it('accepts and refuses what JSON.parse does, for every text of 3 bytes of structure, and 4 where they may be JSON', () => {
    const alphabet = [...'[]{},:"\\-01.eEu \n']
    const longer = (shorter: readonly string[]) =>
      shorter.flatMap((text) => alphabet.map((character) => text + character))
    const [one, two, three] = [longer(['']), longer(longer([''])), longer(longer(longer([''])))]
    // No text after a wrong byte makes it valid.
    const begun = three.filter(mayGoOn)
    expect(begun).toHaveLength(490)
    const texts = ['', ...one, ...two, ...three, ...longer(begun)]
    const wrong = texts.filter((text) => {
      const bytes = encoder.encode(text)
      return accepts(bytes) !== parseAccepts(bytes)
    })
    expect(texts).toHaveLength(1 + 17 + 17 ** 2 + 17 ** 3 + 490 * 17)
    expect(wrong).toEqual([])
  })

  it.each([
    '',
    ' ',
    '\ufeff{}',
    '01',
    '-',
    '1.',
    '.5',
    '1e',
    '+1',
    'NaN',
    'Infinity',
    'tru',
    'truex',
    'nulll',
    "{'a':1}",
    '{a:1}',
    '{"a"}',
    '{"a":}',
    '{"a":1,}',
    '[1,]',
    '[,1]',
    '[1 2]',
    '{"a":1 "b":2}',
    '[1}',
    '{"a":1]',
    '[',
    '{',
    '"',
    '"a',
    '"\\',
    '"\\u12',
    '"\\u12g4"',
    '"\\x41"',
    '"\\\0"',
    '"a\nb"',
    '"a\tb"',
    '1 2',
    '{} {}',
    '// no\n1',
    '[1/**/]',
    '{"a":1}\0',
  ])('refuses %j, and says where', (text) => {
    expect(parseAccepts(encoder.encode(text))).toBe(false)
    try {
      scan(text)
      expect.fail('was accepted')
    } catch (error) {
      expect(error).toBeInstanceOf(JsonSyntaxError)
      const { offset } = error as JsonSyntaxError
      expect(offset).toBeGreaterThanOrEqual(0)
      expect(offset).toBeLessThanOrEqual(encoder.encode(text).length)
    }
  })

  it('says the offset in bytes, not in characters', () => {
    expect(() => scan('["漢",x]')).toThrow('unexpected character at byte 7')
  })
})

function mutate(random: SeededRandom, source: Uint8Array, alphabet: readonly number[]): Uint8Array {
  let bytes = [...source]
  for (let change = random.below(4); change > 0; change--) {
    const at = random.below(bytes.length + 1)
    const byte = random.chance(0.9) ? random.pick(alphabet) : random.below(256)
    const kind = random.below(4)
    if (kind === 0) bytes.splice(at, 1)
    else if (kind === 1) bytes.splice(at, 0, byte)
    else if (kind === 2) bytes.splice(at, 1, byte)
    else bytes = bytes.slice(0, at)
  }
  return Uint8Array.from(bytes)
}

describe('paths and places', () => {
  it('tells duplicate members each time, under their unescaped name', () => {
    const bytes = encoder.encode('{"m":1,"\\u006d":"x","m":[2]}')
    const members = record(bytes, 1).values.filter((value) => value.path.length === 1)
    expect(members.map((value) => [value.path, value.kind])).toEqual([
      [['m'], 'number'],
      [['m'], 'string'],
      [['m'], 'array'],
    ])
    expect(members.map((value) => value.memberStart)).toEqual([1, 7, 20])
  })

  it('keeps a byte order mark that belongs to a name or a text', () => {
    const bytes = encoder.encode('{"\ufeffmodel":"\ufeffx","\\ufeffmodel":1,"\ufeff\\u0061":2}')
    const { values } = record(bytes, 1)
    expect(values.slice(0, -1).map((value) => value.path[0])).toEqual([
      '\ufeffmodel',
      '\ufeffmodel',
      '\ufeffa',
    ])
    expect(decodeString(bytes, values[0]?.start ?? 0, (values[0]?.end ?? 0) - 1)).toBe('"\ufeffx')
  })

  it('tells only values within the depth asked for, the root among them', () => {
    const bytes = encoder.encode(' {"a":{"b":{"c":"deep"}},"d":[[1]]} ')
    const depths = (depth: number) => record(bytes, depth).values.map((value) => value.path.join('.'))
    expect(depths(0)).toEqual([''])
    expect(depths(1)).toEqual(['a', 'd', ''])
    expect(depths(2)).toEqual(['a.b', 'a', 'd.0', 'd', ''])
    expect(record(bytes, 0).strings.map((string) => string.path)).toEqual([['a', 'b', 'c']])
    const shallow: unknown[] = []
    scanJson(bytes, { value: (path) => shallow.push([...path]) })
    expect(shallow).toEqual([['a'], ['d'], []])
  })

  it('counts elements across nested containers', () => {
    const paths = record(encoder.encode('[[],[1,[2],{"k":[3]}],4]'), 9).values.map((value) => value.path)
    expect(paths).toEqual([[0], [1, 0], [1, 1, 0], [1, 1], [1, 2, 'k', 0], [1, 2, 'k'], [1, 2], [1], [2], []])
  })

  it('reads names longer than the short path of decodeString, with and without escapes', () => {
    const name = 'n'.repeat(47)
    const bytes = encoder.encode(`{"${name}":1,"${name}x":2,"${name}xé":3,"${name}\\n":4}`)
    const names = record(bytes, 1).values.map((value) => value.path[0])
    expect(names).toEqual([name, `${name}x`, `${name}xé`, `${name}\n`, undefined])
  })
})

/** `count` times the entry, whose last comma becomes the closing bracket. */
function enclosed(open: string, entry: string, count: number, close: string): Uint8Array {
  const bytes = Buffer.alloc(1 + entry.length * count, entry)
  bytes.copyWithin(1, 0, bytes.length - 1)
  bytes.write(open, 0)
  bytes.write(close, bytes.length - 1)
  return bytes
}

describe('bounds', () => {
  it('refuses text that nests deeper than the bound, and reads text that is exactly as deep', () => {
    const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
    expect(() => scan(nested(MAXIMUM_DEPTH))).not.toThrow()
    expect(() => scan(nested(MAXIMUM_DEPTH + 1))).toThrow(
      `nested too deeply (at most ${MAXIMUM_DEPTH} levels) at byte 256`,
    )
    expect(() => scan(`${'{"a":'.repeat(MAXIMUM_DEPTH)}0${'}'.repeat(MAXIMUM_DEPTH)}`)).not.toThrow()
    expect(() => scan('['.repeat(5_000_000))).toThrow('nested too deeply')
    // Containers beside each other are not deep.
    expect(() => scan(`[${'[[]],'.repeat(1000)}0]`)).not.toThrow()
  })

  const collectGarbage = () => {
    setFlagsFromString('--expose-gc')
    ;(runInNewContext('gc') as () => void)()
  }

  /** The most the heap grew by while `bytes` were scanned, as seen after each `every` values. */
  function heapGrowth(bytes: Uint8Array, every: number): { growth: number; told: number } {
    collectGarbage()
    const before = process.memoryUsage().heapUsed
    let growth = 0
    let told = 0
    const sample = () => {
      if (told++ % every === 0) growth = Math.max(growth, process.memoryUsage().heapUsed - before)
    }
    scanJson(bytes, { valueDepth: 1, value: sample, string: sample })
    growth = Math.max(growth, process.memoryUsage().heapUsed - before)
    return { growth, told }
  }

  it('reads millions of tiny arrays in memory that does not depend on their number', () => {
    const count = 4_000_000
    const bytes = enclosed('[', '[],', count, ']')
    const { growth, told } = heapGrowth(bytes, 100_000)
    expect(told).toBe(count + 1)
    expect(growth).toBeLessThan(16 * 1024 * 1024)
  }, 60_000)

  it('reads one string of 50 MB without a copy of it', () => {
    const bytes = new Uint8Array(50 * 1024 * 1024).fill(0x61)
    bytes[0] = bytes[bytes.length - 1] = 0x22
    const external = process.memoryUsage().arrayBuffers
    const { growth, told } = heapGrowth(bytes, 1)
    expect(told).toBe(2)
    expect(growth).toBeLessThan(4 * 1024 * 1024)
    expect(process.memoryUsage().arrayBuffers - external).toBeLessThan(1024 * 1024)
  }, 60_000)

  it('reads millions of escapes and of tiny members in bounded memory', () => {
    const count = 2_000_000
    const bytes = enclosed('{', '"\\u0061":"\\n",', count, '}')
    const { growth, told } = heapGrowth(bytes, 100_000)
    expect(told).toBe(2 * count + 1)
    expect(growth).toBeLessThan(32 * 1024 * 1024)
  }, 60_000)
})
