import { globSync, readFileSync } from 'node:fs'
import { expect, it } from 'vitest'

/** A lock by number, in SQL or as what a statement gets. */
const LOCK = /\b(7_?264_?190_?\d{3})\b/g

it('no two users of a database lock the same number: each would wait for the other', () => {
  const numbers = globSync('scripts/**/*.ts').flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(LOCK)].map(([number]) => number.replaceAll('_', '')),
  )
  expect(numbers.length).toBeGreaterThanOrEqual(3)
  expect(new Set(numbers).size).toBe(numbers.length)
})
