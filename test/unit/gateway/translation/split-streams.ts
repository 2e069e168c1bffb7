import { SeededRandom } from './events/seeded-random.ts'

/** The bytes one by one, and cut at random. */
export function chunkings(source: Uint8Array): Uint8Array[][] {
  const random = new SeededRandom(5)
  const cuts = [3, 40, 300].map((longest) => {
    const pieces: Uint8Array[] = []
    for (let at = 0; at < source.length; ) {
      const end = at + 1 + random.below(longest)
      pieces.push(source.slice(at, end))
      at = end
    }
    return pieces
  })
  return [[...source].map((byte) => Uint8Array.of(byte)), ...cuts]
}

/** Without ids that are made anew with each answer, and without members that say nothing. */
export function meaning(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(meaning)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).map(([name, each]) => [name, meaning(each)] as const)
  return Object.fromEntries(
    members.filter(([, each]) => !['null', '""', '[]', '{}'].includes(JSON.stringify(each))),
  )
}
