import { describe, expect, it } from 'vitest'
import { grantSetId, mayUse } from '../../../src/calls/access.ts'
import { modelTarget } from '../../../src/calls/target.ts'
import { integrationGrantsOf } from '../../../src/identity/integration-rights.ts'
import {
  isHostAllowed,
  TOOL_FAMILIES,
  type ToolFamily,
  toolRightsOf,
} from '../../../src/identity/tool-rights.ts'
import { DEFAULT_TOOL_RIGHTS } from '../../harness/tool-rights.ts'
import { somePrincipal } from './fixtures.ts'

const granted = (...ids: string[]) => ({
  models: { all: false, ids: new Set(ids) },
  tools: DEFAULT_TOOL_RIGHTS,
  integrations: { all: false, bySlug: {} },
})
const everything = (...ids: string[]) => ({
  models: { all: true, ids: new Set(ids) },
  tools: DEFAULT_TOOL_RIGHTS,
  integrations: { all: false, bySlug: {} },
})

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

describe('rules for tools', () => {
  const tool = (family: ToolFamily) => ({ kind: 'tool', id: family, family }) as const
  const caller = somePrincipal({ groupIds: ['analysts'] })
  const keyId = 'aaaaaaaaaaaa'
  const web = { allow: ['*'], deny: [] }
  const shell = { allow: [], deny: [] }

  it('are on for everyone until one switches a family off', () => {
    for (const family of TOOL_FAMILIES) expect(mayUse(caller, tool(family))).toBe(true)
  })

  it.each([
    [{ subject_type: 'organization' }, true],
    [{ subject_type: 'group', subject_id: 'analysts' }, true],
    [{ subject_type: 'group', subject_id: 'others' }, false],
    [{ subject_type: 'user', subject_id: caller.userId }, true],
    [{ subject_type: 'user', subject_id: 'another' }, false],
    [{ subject_type: 'key', subject_id: keyId }, true],
    [{ subject_type: 'key', subject_id: 'bbbbbbbbbbbb' }, false],
  ] as const)('for %o concern those callers only', (subject, isOff) => {
    const tools = toolRightsOf({ off: [{ ...subject, tools: ['shell'] }], web, shell }, caller)
    expect(mayUse({ ...caller, tools }, tool('shell'))).toBe(!isOff)
    expect(mayUse({ ...caller, tools }, tool('files'))).toBe(true)
  })

  it('allow hosts by name, by domain and by *, and deny before they allow', () => {
    const rules = { allow: ['*.example.com', 'one.test'], deny: ['secret.example.com'] }
    for (const host of ['a.example.com', 'a.b.example.com', 'one.test']) {
      expect(isHostAllowed(rules, host)).toBe(true)
    }
    for (const host of ['example.com', 'badexample.com', 'two.one.test', 'secret.example.com']) {
      expect(isHostAllowed(rules, host)).toBe(false)
    }
    expect(isHostAllowed({ allow: ['*'], deny: ['*.test'] }, 'a.test')).toBe(false)
    expect(isHostAllowed({ allow: [], deny: [] }, 'a.test')).toBe(false)
  })
})

describe('grants on models', () => {
  it('give no integration, not even one of the same name', () => {
    const integration = {
      kind: 'integration',
      id: 'gpt-5_t',
      slug: 'gpt-5',
      tool: 't',
      connectionId: null,
    } as const
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

describe('grants on integrations', () => {
  const mayCall = (rows: Parameters<typeof integrationGrantsOf>[0], slug: string, tool: string) =>
    mayUse(
      { ...granted(), integrations: integrationGrantsOf(rows) },
      { kind: 'integration', id: `${slug}_${tool}`, slug, tool, connectionId: null },
    )

  it('cover the tools that they name, or every tool', () => {
    expect(mayCall([{ integration: 'crm', tools: null }], 'crm', 'find')).toBe(true)
    expect(mayCall([{ integration: 'crm', tools: ['find'] }], 'crm', 'find')).toBe(true)
    expect(mayCall([{ integration: 'crm', tools: ['find'] }], 'crm', 'delete')).toBe(false)
    expect(mayCall([{ integration: 'crm', tools: null }], 'crm-2', 'find')).toBe(false)
    expect(mayCall([{ integration: '*', tools: null }], 'crm', 'find')).toBe(true)
    expect(mayCall([], 'crm', 'find')).toBe(false)
    expect(mayCall([{ integration: 'crm', tools: ['find'] }], 'constructor', 'find')).toBe(false)
  })

  it('add up', () => {
    const rows = [
      { integration: 'crm', tools: ['find'] },
      { integration: 'crm', tools: ['add'] },
    ]
    expect(mayCall(rows, 'crm', 'find')).toBe(true)
    expect(mayCall(rows, 'crm', 'add')).toBe(true)
    expect(mayCall([...rows, { integration: 'crm', tools: null }], 'crm', 'other')).toBe(true)
    expect(mayCall([{ integration: 'crm', tools: null }, ...rows], 'crm', 'other')).toBe(true)
  })
})
