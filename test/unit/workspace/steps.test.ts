import { describe, expect, it } from 'vitest'
import { drained, type Slices } from '../../../src/lib/slices.ts'
import type { FileSearchResult } from '../../../src/workspace/contract.ts'
import { Entries } from '../../../src/workspace/files/entries.ts'
import { FileStore } from '../../../src/workspace/files/file-store.ts'
import { applyHunks } from '../../../src/workspace/patch/apply-hunks.ts'
import { patchSteps } from '../../../src/workspace/patch/apply-patch.ts'
import { type FilePatch, parsePatch } from '../../../src/workspace/patch/parse-patch.ts'
import { searchFiles } from '../../../src/workspace/search-files.ts'
import { StepCounter } from '../../harness/counted-steps.ts'
import { memoryStorage } from '../ledger/memory-storage.ts'

/** A file and the lines of a patch, both for a number of hunks. */
type Growing = (hunks: number) => { text: string; patch: string }

const numbered = (count: number, line: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => line(index)).join('')

const PATCHES: Record<string, Growing> = {
  'lines that are all the same': (count) => ({
    text: 'a\n\n'.repeat(count),
    patch: '@@\n-a\n+b\n'.repeat(count),
  }),
  'lines that differ in their spaces': (count) => ({
    text: numbered(count, (index) => `  ${index} \n\n`),
    patch: numbered(count, (index) => `@@\n-${index}\n+b\n`),
  }),
  'lines that are exact elsewhere': (count) => ({
    text: `${'a\nb\nc\n'.repeat(count)}${'a \nb\n'.repeat(count)}`,
    patch: '@@\n-a\n-b\n-a\n-b\n+x\n'.repeat(count / 4),
  }),
  anchors: (count) => ({
    text: numbered(count, (index) => `f${index}\na\n`),
    patch: numbered(count, (index) => `@@ f${index}\n-a\n+b\n`),
  }),
  'anchors of one hunk': (count) => ({
    text: `${'f\n'.repeat(count)}a\n`,
    patch: `${'@@ f\n'.repeat(count)}-a\n+b\n`,
  }),
  'one long hunk': (count) => ({
    text: 'a\n'.repeat(2 * count),
    patch: `@@\n${'-a\n'.repeat(count)}+b\n`,
  }),
  'a long hunk that almost fits': (count) => ({
    text: `${'a\n'.repeat(2 * count)}b\n`,
    patch: `@@\n${'-a\n'.repeat(count)}-b\n`,
  }),
}

function patched({ text, patch }: ReturnType<Growing>): void {
  const [file] = parsePatch(`*** Begin Patch\n*** Update File: f\n${patch}*** End Patch`)
  try {
    applyHunks(text, (file as Extract<FilePatch, { kind: 'update' }>).hunks, 'f', patchSteps())
  } catch (error) {
    expect(String(error)).toMatch(/does not have these lines/)
  }
}

describe('a patch', () => {
  it.each(Object.entries(PATCHES))('takes steps that grow with its length: %s', (_, growing) => {
    using counter = new StepCounter()
    const [small, large] = [growing(400), growing(1_600)]
    const steps = counter.stepsOf(() => patched(small))
    expect(counter.stepsOf(() => patched(large))).toBeLessThan(5 * steps)
  })
})

function storeOf(files: Record<string, string>): FileStore {
  const store = new FileStore(new Entries(memoryStorage().sql, () => 0))
  for (const [name, text] of Object.entries(files)) store.write(`/workspace/${name}`, Buffer.from(text))
  return store
}

const going = new AbortController().signal
const search = (store: FileStore, pattern: string, more: { signal?: AbortSignal; now?: () => number } = {}) =>
  searchFiles(
    store,
    { callId: 's', pattern, path: '.', glob: null, ignoreCase: false },
    more.signal ?? going,
    more.now,
  )

/** Letters of which no part is like another. */
function letters(count: number): string {
  let state = 1
  return Array.from({ length: count }, () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31
    return state > 2 ** 30 ? 'a' : 'b'
  }).join('')
}

/** Patterns with many states, and the length of lines that lead through different ones. */
const PATTERNS = [
  ['([ab]{1,150}){3}[k-z]', 400],
  ['(a|b)*a[ab]{30}[c-z]', 40],
  ['(a|b)*a[ab]{900}[c-z]', 400],
  ['(a|b)*a[ab]{900}[c-z]', 12_000],
] as const
const LARGE = PATTERNS[0][0]

describe('a search', () => {
  const text = letters(12_000)
  const lines = (length: number) => text.replace(new RegExp(`.{${length}}`, 'g'), '$&\n')

  it.each(PATTERNS)('is done in slices of few steps: %s in lines of %i', (pattern, length) => {
    const slices: Slices<FileSearchResult> = search(storeOf({ text: lines(length) }), pattern)
    using counter = new StepCounter()
    const most = counter.mostStepsOf(() => slices.next().done === true)
    expect(most).toBeLessThan(2_500_000)
  })

  it('ends after its steps, and says so', () => {
    const store = storeOf({ text: lines(400).repeat(100) })
    let slices = 0
    const work = search(store, LARGE)
    for (;;) {
      const { done, value } = work.next()
      slices++
      if (done) {
        expect(value).toEqual({ matches: [], more: true, unsearched: true })
        break
      }
    }
    expect(slices).toBeGreaterThan(300)
    expect(slices).toBeLessThan(1_100)
    expect(drained(search(store, 'abba[k-z]'))).toEqual({ matches: [], more: false })
  })

  it('ends after its time, and when it is stopped', () => {
    const store = storeOf({ text: lines(400).repeat(5) })
    let time = 0
    const result = drained(search(store, LARGE, { now: () => (time += 1_000) }))
    expect(result).toEqual({ matches: [], more: true, unsearched: true })
    expect(time).toBe(5_000)
    const stopping = search(store, LARGE, { signal: AbortSignal.abort() })
    expect(() => drained(stopping)).toThrow('The search was stopped.')
  })

  it('finds what is in the beginning of a line that is too long for the rest to be searched', () => {
    const store = storeOf({ text: `needle ${text.repeat(50)} hay\n`, other: 'hay needle\n' })
    const { matches, unsearched } = drained(search(store, 'needle( [ab]|$)'))
    expect(matches.map(({ path, line }) => [path, line])).toEqual([
      ['/workspace/other', 1],
      ['/workspace/text', 1],
    ])
    expect(unsearched).toBe(true)
  })

  it('reads a file of line feeds only', () => {
    const store = storeOf({ text: '\n'.repeat(200_000) })
    expect(drained(search(store, 'x'))).toEqual({ matches: [], more: false })
  })
})
