import { describe, expect, it } from 'vitest'
import { grantSetId, mayUse } from '../../../src/governance/access.ts'
import { modelTarget } from '../../../src/governance/target.ts'

const granted = (...ids: string[]) => ({ models: { all: false, ids: new Set(ids) } })
const everything = (...ids: string[]) => ({ models: { all: true, ids: new Set(ids) } })

describe('mayUse', () => {
  it('takes exact ids only', () => {
    const principal = granted('claude-sonnet', 'gpt-5')
    expect(mayUse(principal, modelTarget('gpt-5'))).toBe(true)
    for (const other of ['gpt-5-mini', 'gpt', 'GPT-5', 'gpt-5 ', '', '*']) {
      expect(mayUse(principal, modelTarget(other))).toBe(false)
    }
  })

  it('takes any id with a grant on every model, and none without grants', () => {
    expect(mayUse(everything(), modelTarget('anything'))).toBe(true)
    expect(mayUse(granted(), modelTarget('anything'))).toBe(false)
  })
})

describe('grants on models', () => {
  it('give no integration, not even one of the same name', () => {
    const integration = { kind: 'integration', id: 'gpt-5', connectionId: null } as const
    expect(mayUse(everything(), integration)).toBe(false)
    expect(mayUse(granted('gpt-5'), integration)).toBe(false)
  })
})

describe('grantSetId', () => {
  it('is short and does not depend on the order of grants', () => {
    expect(grantSetId(granted('b', 'a'))).toBe(grantSetId(granted('a', 'b')))
    expect(grantSetId(granted('a'))).toMatch(/^[0-9a-f]{32}$/)
  })

  it('is the same for everything, whatever else is granted', () => {
    expect(grantSetId(everything('a'))).toBe(grantSetId(everything()))
  })

  it('differs between sets, however their ids are cut', () => {
    const sets = [
      granted(),
      granted(''),
      granted('a'),
      granted('b'),
      granted('a', 'b'),
      granted('ab'),
      granted('a,b'),
      granted('a\nb'),
      granted('a","b'),
      granted('*'),
      everything(),
    ]
    expect(new Set(sets.map(grantSetId)).size).toBe(sets.length)
  })
})
