import { describe, expect, it } from 'vitest'
import { ScanBudget } from '../../../src/dlp/scan/scan-budget.ts'
import { TextStream } from '../../../src/dlp/stream/text-stream.ts'
import { drained, runSlices } from '../../../src/lib/slices.ts'
import { detectorOf, fullProfile } from '../../dlp/engine-under-test.ts'
import { budgetOf, describeExcess, randomTrial, repeating, seeded, WAYS } from '../../dlp/step-campaign.ts'
import { StepCounter } from '../../harness/counted-steps.ts'

/** Texts that once took squared time, and those that take the most steps for each unit. */
const KNOWN = [
  'AB: -----BEGIN PRIVATE KEY-----\n',
  'QUFBQUFBQUFBQUFBQUFB\n',
  'Word ',
  ':.',
  '%25',
  '["a",',
  '4111 1111 1111 1111 ',
  '078051120 ',
  'pypi-AgE',
  'password=Xk39fjw8Qp2z&',
  'aGVsbG8gd29ybGQhIGhlbGxvIHdvcmxkISBoZWxsbyE=\n',
].map(repeating)

/** Random combinations for each way; `test:dlp` runs 200. */
const TRIALS = 1

describe('steps of an inspection', () => {
  const ways = ['whole', 'hold-back', 'pieces of 64 units', 'tool arguments'] as const

  it.each(ways)('grow with known and random texts and no faster: %s', (name) => {
    using counter = new StepCounter()
    const random = seeded(7)
    const trials = [...KNOWN, ...Array.from({ length: TRIALS }, () => randomTrial(random))]
    expect(trials.flatMap((trial) => describeExcess(counter, WAYS[name], trial))).toEqual([])
  })

  it('are counted by the engine, below half of what it allows', () => {
    for (const trial of KNOWN) expect(budgetOf(trial, 5_000)).toBeLessThan(256)
  })

  it('are refused where they grow faster than the texts', () => {
    const stream = new TextStream(detectorOf(fullProfile()), () => null, '', new ScanBudget(10_000))
    expect(() => stream.push('some words '.repeat(2_000))).toThrow(
      expect.objectContaining({ code: 'dlp_too_complex', status: 400, shouldRetry: false }),
    )
  })
})

describe('turns for other requests', () => {
  const detector = detectorOf(fullProfile())
  const slicesOf = (text: string) => new TextStream(detector, () => '#').wholeInSlices(text)

  it.each([
    ['words', 'Lorem ipsum dolor. '],
    ['a run without a blank', 'QUFB'],
    ['escapes', '%25'],
  ])('come often in a long text of %s', (_, unit) => {
    let turns = 0
    const slices = slicesOf(unit.repeat(300_000 / unit.length))
    while (!slices.next().done) turns++
    expect(turns).toBeGreaterThan(8)
  })

  it('let timers run before the text is done', async () => {
    const order: string[] = []
    setTimeout(() => order.push('timer'), 0)
    await runSlices(slicesOf('Lorem ipsum dolor. '.repeat(40_000)))
    order.push('text')
    expect(order).toEqual(['timer', 'text'])
  })

  it('change nothing of what is found', () => {
    const text = `${'Lorem ipsum '.repeat(9_000)}4111 1111 1111 1111 ${'x '.repeat(50_000)}`
    expect(drained(slicesOf(text)).filter(({ replacement }) => replacement !== null)).toHaveLength(1)
  })
})
