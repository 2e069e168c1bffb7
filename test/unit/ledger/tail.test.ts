import { describe, expect, it } from 'vitest'
import { OpenTails, readTail } from '../../../src/ledger/tail/tail.ts'
import { World } from './account-world.ts'

const idsOf = (texts: string[]) => texts.map((text) => JSON.parse(text).id)

describe('readTail', () => {
  it('reads a bounded number of records, the newest ones', () => {
    const world = new World(1_000_000)
    for (let number = 0; number < 3_000; number++) world.commit([world.call(`call_${number}`, 0)])
    const all = readTail(world.account.log, null, null)
    expect(all.skipped).toBe(true)
    expect(idsOf(all.opened)).toEqual(Array.from({ length: 100 }, (_, number) => `call_${2_900 + number}`))
    // None is of this user, and not all of them are looked at.
    const parse = JSON.parse
    let parsed = 0
    JSON.parse = ((text: string) => {
      parsed += 1
      return parse(text)
    }) as typeof JSON.parse
    const own = readTail(world.account.log, 0, 'somebody')
    JSON.parse = parse
    expect(own).toMatchObject({ opened: [], closed: [], skipped: true })
    expect(parsed).toBe(0)
  })
})

describe('OpenTails', () => {
  const admit = (tails: OpenTails, tail: number, reader: string | null, now: number) =>
    tails.admit({ tailId: `${tail}`, reader }, now)

  it('admits twenty tails, and others when some have ended', () => {
    const tails = new OpenTails()
    for (let tail = 0; tail < 20; tail++) expect(admit(tails, tail, null, tail)).toBe(true)
    expect(admit(tails, 20, null, 100)).toBe(false)
    expect(admit(tails, 3, null, 100)).toBe(true)
    expect(admit(tails, 20, null, 15_001)).toBe(true)
    expect(admit(tails, 21, null, 15_001)).toBe(false)
  })

  it('admits five of a user, and those of others beside them', () => {
    const tails = new OpenTails()
    for (let tail = 0; tail < 5; tail++) expect(admit(tails, tail, 'ada', 0)).toBe(true)
    expect(admit(tails, 5, 'ada', 0)).toBe(false)
    expect(admit(tails, 4, 'ada', 0)).toBe(true)
    expect(admit(tails, 6, 'grace', 0)).toBe(true)
  })
})
