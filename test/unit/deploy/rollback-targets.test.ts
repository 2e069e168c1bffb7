import { describe, expect, it } from 'vitest'
import type { ScriptState } from '../../../scripts/deploy/cloudflare-api.ts'
import type { AccountState, ScriptChange } from '../../../scripts/deploy/plan-types.ts'
import { rollbackTargets } from '../../../scripts/deploy/rollback-targets.ts'

/** A script with the versions 3, 2 and 1, the last of which was tested. */
const serving = (versionId: string, more: Partial<ScriptState> = {}): ScriptState => ({
  migrationTag: null,
  versions: ['3', '2', '1'].map((id) => ({ id, tag: `hg-${id}` })),
  traffic: [{ versionId, percentage: 100 }],
  variables: {},
  bindings: {},
  secrets: [],
  triggers: { crons: [], hosts: [], workersDev: false },
  testedVersion: '1',
  ...more,
})

const NONE: ScriptChange = { kind: 'none' }
const versionOver = (base: string): ScriptChange => ({ kind: 'version', versionId: null, base })

function targets(
  [tools, toolsChange]: [ScriptState, ScriptChange],
  [gateway, gatewayChange]: [ScriptState, ScriptChange],
  tested: { gateway: string | null; tools: string | null } = { gateway: '1', tools: '1' },
) {
  const state = { tools, gateway, database: { tested } } as unknown as AccountState
  return rollbackTargets({ tools: toolsChange, gateway: gatewayChange }, state)
}

describe('a failed test goes back to', () => {
  it('what serves, if that was tested', () => {
    expect(targets([serving('1'), versionOver('1')], [serving('1'), versionOver('1')])).toEqual({
      tools: '1',
      gateway: '1',
    })
    expect(targets([serving('1'), NONE], [serving('1'), versionOver('1')])).toEqual({
      tools: null,
      gateway: '1',
    })
    expect(targets([serving('1'), versionOver('1')], [serving('1'), NONE])).toEqual({
      tools: '1',
      gateway: null,
    })
  })

  it('what was tested, if a deployment that was cut has left what serves', () => {
    expect(targets([serving('2'), NONE], [serving('1'), versionOver('1')])).toEqual({
      tools: '1',
      gateway: '1',
    })
    expect(targets([serving('2'), NONE], [serving('2'), NONE])).toEqual({ tools: '1', gateway: '1' })
    expect(targets([serving('2'), versionOver('2')], [serving('2'), versionOver('2')])).toEqual({
      tools: '1',
      gateway: '1',
    })
  })

  it('what serves, if a person has chosen it: an older version, or one without a tag of a deployment', () => {
    const tested = { gateway: '2', tools: '2' }
    const older = serving('1', { testedVersion: '2' })
    expect(targets([older, versionOver('1')], [older, versionOver('1')], tested)).toEqual({
      tools: '1',
      gateway: '1',
    })
    expect(targets([older, NONE], [older, NONE], tested)).toEqual({ tools: null, gateway: null })
    const versions = [
      { id: '2', tag: null },
      { id: '1', tag: 'hg-1' },
    ]
    const byHand = serving('2', { versions })
    expect(targets([serving('1'), NONE], [byHand, versionOver('2')])).toEqual({ tools: null, gateway: '2' })
    expect(targets([serving('2'), NONE], [byHand, versionOver('2')])).toEqual({ tools: '1', gateway: '2' })
  })

  it('what serves, if nothing was tested', () => {
    const tested = { gateway: null, tools: null }
    const untested = serving('2', { testedVersion: null })
    expect(targets([untested, versionOver('2')], [untested, versionOver('2')], tested)).toEqual({
      tools: '2',
      gateway: '2',
    })
    expect(targets([untested, NONE], [untested, NONE], tested)).toEqual({ tools: null, gateway: null })
  })

  it('nothing, if the classes of the gateway change or have changed: the tools of its release stay with it', () => {
    const changing: ScriptChange = { kind: 'deploy', isNew: false, base: '1' }
    expect(targets([serving('1'), versionOver('1')], [serving('1'), changing])).toEqual({
      tools: null,
      gateway: null,
    })
    const changed = serving('2', { testedVersion: null })
    expect(targets([serving('2'), NONE], [changed, NONE])).toEqual({ tools: null, gateway: null })
    expect(targets([serving('2'), versionOver('2')], [changed, NONE])).toEqual({ tools: '2', gateway: null })
  })
})
