import { describe, expect, it } from 'vitest'
import type { BuiltInDetector } from '../../../src/dlp/detectors/registry.ts'
import { policyIssues } from '../../../src/dlp/policy/policy-check.ts'
import {
  actionOf,
  type DlpPolicy,
  PolicyError,
  type PolicySubject,
  profilesFor,
  versionOf,
} from '../../../src/dlp/policy/profiles.ts'
import type { Action } from '../../../src/dlp/types.ts'
import { ACTIONS, type PolicyBody, policyBody } from '../../../src/wire/dlp.ts'
import { SeededRandom } from '../lib/seeded-random.ts'

const DETECTORS: readonly BuiltInDetector[] = [
  { id: 'card', category: 'financial', description: 'cards', minimumScore: 0.6 },
  { id: 'iban', category: 'financial', description: 'accounts', minimumScore: 0.7 },
  { id: 'email', category: 'contact', description: 'addresses', minimumScore: 0.5 },
]

const anybody: PolicySubject = { groupIds: [], userId: 'u', modelId: 'm', integrationId: null }

let policies = 0
function policy(body: Record<string, unknown>, values: Partial<DlpPolicy> = {}): DlpPolicy {
  policies += 1
  const id = `00000000-0000-4000-8000-${String(policies).padStart(12, '0')}`
  const whole = policyBody.parse({ directions: ['request'], rules: [], ...body })
  return { id, version: 1, name: `policy ${policies}`, enabled: true, body: whole, ...values }
}

const profiles = (all: readonly DlpPolicy[], subject: Partial<PolicySubject> = {}) =>
  profilesFor(all, { ...anybody, ...subject }, DETECTORS)

describe('scope', () => {
  const rules = [{ detector: 'card', action: 'block' }]
  const [group, user] = [crypto.randomUUID(), crypto.randomUUID()]

  it.each<[name: string, scope: Record<string, string[]>, subject: Partial<PolicySubject>, holds: boolean]>([
    ['nobody named: everybody', {}, {}, true],
    ['a group of the user', { group_ids: [crypto.randomUUID(), group] }, { groupIds: ['x', group] }, true],
    ['another group', { group_ids: [group] }, { groupIds: ['x'] }, false],
    ['no group', { group_ids: [group] }, {}, false],
    ['the user', { user_ids: [user] }, { userId: user }, true],
    ['another user', { user_ids: [user] }, {}, false],
    ['the model', { model_ids: ['a', 'm'] }, {}, true],
    ['another model', { model_ids: ['a'] }, {}, false],
    ['a model where there is none', { model_ids: ['a'] }, { modelId: null }, false],
    ['the integration', { integration_ids: ['mail'] }, { integrationId: 'mail' }, true],
    ['an integration where there is none', { integration_ids: ['mail'] }, {}, false],
    ['every kind fits', { user_ids: [user], model_ids: ['m'] }, { userId: user }, true],
    ['one kind does not', { user_ids: [user], model_ids: ['a'] }, { userId: user }, false],
  ])('%s', (_name, scope, subject, holds) => {
    expect(profiles([policy({ scope, rules })], subject).request !== null).toBe(holds)
  })

  it('holds in the directions of the policy only, and not while it is disabled', () => {
    const one = policy({ directions: ['response', 'tool_result'], rules })
    expect(profiles([one])).toEqual({
      request: null,
      response: expect.objectContaining({ direction: 'response' }),
      tool_arguments: null,
      tool_result: expect.objectContaining({ direction: 'tool_result' }),
    })
    expect(profiles([{ ...one, enabled: false }]).response).toBeNull()
    expect(profiles([]).request).toBeNull()
  })
})

describe('rules', () => {
  it('take the score of the detector unless they name one', () => {
    const both = [
      { detector: 'card', action: 'mask' },
      { detector: 'email', minimum_score: 0, action: 'warn' },
    ]
    expect(profiles([policy({ rules: both })]).request?.rules).toEqual([
      { detector: 'card', minimumScore: 0.6, action: 'mask' },
      { detector: 'email', minimumScore: 0, action: 'warn' },
    ])
  })

  it('on a category hold for each of its detectors', () => {
    const rules = [{ category: 'financial', action: 'redact' }]
    expect(profiles([policy({ rules })]).request?.rules).toEqual([
      { detector: 'card', minimumScore: 0.6, action: 'redact' },
      { detector: 'iban', minimumScore: 0.7, action: 'redact' },
    ])
  })

  it('the most severe one counts; the same one with a higher score is idle', () => {
    const mild = policy({ rules: [{ detector: 'card', minimum_score: 0.5, action: 'mask' }] })
    const strict = policy({ rules: [{ detector: 'card', minimum_score: 0.9, action: 'block' }] })
    const idle = policy({ rules: [{ detector: 'card', minimum_score: 0.8, action: 'warn' }] })
    const profile = profiles([strict, idle, mild]).request
    if (!profile) throw new Error('no profile')
    expect(profile.rules).toEqual([
      { detector: 'card', minimumScore: 0.5, action: 'mask' },
      { detector: 'card', minimumScore: 0.9, action: 'block' },
    ])
    const actionAt = (score: number) => actionOf(profile, { detector: 'card', score })
    expect([0.4, 0.5, 0.85, 0.9, 1].map(actionAt)).toEqual([null, 'mask', 'mask', 'block', 'block'])
    expect(actionOf(profile, { detector: 'iban', score: 1 })).toBeNull()
  })

  it('on something that is not known here stop everything', () => {
    for (const rules of [
      [{ detector: 'gone', action: 'block' }],
      [{ category: 'crypto', action: 'block' }],
      [{ custom: 'gone', action: 'block' }],
    ]) {
      expect(() => profiles([policy({ rules })])).toThrow(PolicyError)
    }
  })
})

describe('custom patterns and dictionaries', () => {
  const own = (id: string, pattern: string) => ({
    patterns: [{ id, pattern, score: 0.8 }],
    rules: [{ custom: id, action: 'block' }],
  })

  it('come with a profile when a rule of the direction names them', () => {
    const one = policy({
      patterns: [{ id: 'badge', pattern: 'B-\\d{6}', ignore_case: true, score: 0.7 }],
      dictionaries: [{ id: 'projects', terms: ['Blue Moon'] }],
      rules: [{ category: 'custom', action: 'redact' }],
    })
    expect(profiles([one]).request).toMatchObject({
      rules: [
        { detector: 'badge', minimumScore: 0, action: 'redact' },
        { detector: 'projects', minimumScore: 0, action: 'redact' },
      ],
      custom: [
        { id: 'badge', kind: 'pattern', pattern: 'B-\\d{6}', ignoreCase: true, score: 0.7 },
        { id: 'projects', kind: 'dictionary', terms: ['Blue Moon'], ignoreCase: true, score: 1 },
      ],
    })
    expect(profiles([policy({ patterns: own('badge', 'x').patterns })]).request?.custom).toEqual([])
  })

  it('of one name in two policies have names of their own, the same in every call', () => {
    const [first, second] = [policy(own('badge', 'a')), policy(own('badge', 'b'))]
    const other = policy({ ...own('badge', 'c'), scope: { model_ids: ['another'] } })
    const name = (of: DlpPolicy) => `badge--${of.id.replaceAll('-', '').slice(0, 12)}`
    // The first twelve digits are what differs in a random id; here it is the last ones.
    const rename = (of: DlpPolicy, start: string) => ({ ...of, id: start + of.id.slice(8) })
    const [one, two] = [rename(first, '11111111'), rename(second, '22222222')]
    const both = profiles([one, two]).request
    expect(both?.custom.map(({ id, pattern }) => [id, pattern])).toEqual([
      [name(one), 'a'],
      [name(two), 'b'],
    ])
    expect(both?.rules.map(({ detector }) => detector)).toEqual([name(one), name(two)])
    expect(profiles([one, other]).request?.custom.map(({ id }) => id)).toEqual([name(one)])
    expect(profiles([one, { ...two, enabled: false }]).request?.custom[0]?.id).toBe('badge')
    expect(profiles([policy(own('card', 'x'))]).request?.custom[0]?.id).toMatch(/^card--/)
  })
})

describe('uninspectable content', () => {
  it.each<[directions: string[], uninspectable: Record<string, string>, expected: (string | undefined)[]]>([
    [['request', 'tool_result'], {}, ['allow', undefined, 'block']],
    [['request'], {}, ['allow', undefined, undefined]],
    [['request', 'tool_result'], { request: 'block', tool_result: 'allow' }, ['block', undefined, 'allow']],
    [['response'], { response: 'block' }, [undefined, 'block', undefined]],
  ])('%j with %j', (directions, uninspectable, expected) => {
    const made = profiles([policy({ directions, uninspectable })])
    expect([made.request, made.response, made.tool_result].map((one) => one?.uninspectable)).toEqual(expected)
  })

  it('is blocked when one of several policies blocks it', () => {
    const directions = ['tool_result']
    const lenient = policy({ directions, uninspectable: { tool_result: 'allow' } })
    expect(profiles([lenient, policy({ directions })]).tool_result?.uninspectable).toBe('block')
    expect(profiles([lenient]).tool_result?.uninspectable).toBe('allow')
  })
})

describe('the version', () => {
  it('names every policy that went into it, whatever their order', () => {
    const [one, two] = [policy({}), policy({ directions: ['request', 'response'] }, { version: 7 })]
    expect(profiles([one, two]).request?.version).toBe(`${one.id}@1,${two.id}@7`)
    expect(profiles([two, one]).request?.version).toBe(`${one.id}@1,${two.id}@7`)
    expect(profiles([two, one]).response?.version).toBe(`${two.id}@7`)
  })

  it('is a digest of them where they are many', () => {
    const many = Array.from({ length: 5 }, () => policy({}))
    expect(versionOf(many)).toMatch(/^sha256:[0-9a-f]{32}$/)
    expect(versionOf(many.toReversed())).toBe(versionOf(many))
    const [first, ...rest] = many
    if (!first) throw new Error('none')
    expect(versionOf([{ ...first, version: 2 }, ...rest])).not.toBe(versionOf(many))
  })
})

describe('profiles of the same policies', () => {
  it('are the same objects for all calls that the same policies fit', () => {
    const scoped = policy({ scope: { model_ids: ['m'] }, rules: [{ detector: 'card', action: 'block' }] })
    const all = [scoped, policy({ rules: [{ detector: 'email', action: 'warn' }] })]
    const first = profiles(all)
    expect(profiles(all, { userId: 'another' })).toBe(first)
    expect(profiles(all, { modelId: 'other' })).not.toBe(first)
    expect(profiles(all, { modelId: 'third' })).toBe(profiles(all, { modelId: 'other' }))
    expect(profiles([...all])).not.toBe(first)
  })

  it("share what is the customer's own over directions, calls and other versions of other policies", () => {
    const own = policy({
      directions: ['request', 'response'],
      dictionaries: [{ id: 'words', terms: ['x'] }],
      rules: [{ custom: 'words', action: 'mask' }],
    })
    const other = policy({ rules: [{ detector: 'card', action: 'mask' }] })
    const made = profiles([own, other])
    const words = made.request?.custom[0]
    expect(words?.id).toBe('words')
    expect(made.response?.custom[0]).toBe(words)
    expect(profiles([own, { ...other, version: 2 }]).request?.custom[0]).toBe(words)
  })
})

describe('over random policies', () => {
  const models = ['a', 'b', 'c']
  const scores = [{}, ...[0, 0.3, 0.5, 0.6, 0.75, 1].map((score) => ({ minimum_score: score }))]

  function randomPolicy(random: SeededRandom): DlpPolicy {
    const rules = Array.from({ length: random.below(5) }, () => {
      const what = random.pick([
        { detector: 'card' },
        { detector: 'iban' },
        { category: 'financial' },
        { category: 'contact' },
      ])
      return { ...what, ...random.pick(scores), action: random.pick(ACTIONS) }
    })
    const scope = random.chance(0.5) ? {} : { model_ids: [random.pick(models)] }
    const directions = random.chance(0.7) ? ['request'] : ['response']
    const uninspectable = random.chance(0.3) && directions[0] === 'request' ? { request: 'block' } : {}
    return policy({ rules, scope, directions, uninspectable }, { enabled: random.chance(0.8) })
  }

  /** Computed from the policy itself: the most severe action of all rules that name the finding's detector. */
  function expectedAction(all: DlpPolicy[], modelId: string, detector: string, score: number): Action | null {
    const known = DETECTORS.find(({ id }) => id === detector)
    const actions = all
      .filter((one) => one.enabled && one.body.directions.includes('request'))
      .filter(({ body }) => body.scope.model_ids?.includes(modelId) ?? true)
      .flatMap(({ body }) => body.rules)
      .filter((rule) => rule.detector === detector || rule.category === known?.category)
      .filter((rule) => score >= (rule.minimum_score ?? known?.minimumScore ?? 0))
      .map(({ action }) => ACTIONS.indexOf(action))
    return actions.length === 0 ? null : (ACTIONS[Math.max(...actions)] ?? null)
  }

  it('a finding meets the most severe rule it reaches, and a further policy never makes it milder', () => {
    for (let seed = 1; seed <= 300; seed += 1) {
      const random = new SeededRandom(seed)
      const all = Array.from({ length: random.below(6) }, () => randomPolicy(random))
      const modelId = random.pick(models)
      const profile = profiles(all, { modelId }).request
      const shuffled = profiles(all.toReversed(), { modelId }).request
      expect(shuffled, `seed ${seed}`).toEqual(profile)
      const more = profiles([...all, randomPolicy(random)], { modelId }).request
      for (const { id: detector } of DETECTORS) {
        for (let score = 0; score <= 1; score += 0.05) {
          const found = profile && actionOf(profile, { detector, score })
          expect(found, `seed ${seed} ${detector} ${score}`).toBe(
            expectedAction(all, modelId, detector, score),
          )
          const then = more && actionOf(more, { detector, score })
          const severity = (action: Action | null) => (action === null ? -1 : ACTIONS.indexOf(action))
          expect(severity(then), `seed ${seed}`).toBeGreaterThanOrEqual(severity(found))
        }
      }
      if (profile?.uninspectable === 'block') expect(more?.uninspectable).toBe('block')
      expect(new Set(profile?.rules.map((rule) => JSON.stringify(rule))).size).toBe(
        profile?.rules.length ?? 0,
      )
    }
  })
})

describe('what makes a policy unusable', () => {
  const checkPattern = (source: string) => {
    if (source.includes('(?=')) throw new Error('looks ahead, which cannot be done in linear time')
  }
  const issues = (body: Record<string, unknown>) =>
    policyIssues(policyBody.parse({ directions: ['request'], rules: [], ...body }) as PolicyBody, {
      detectors: DETECTORS,
      checkPattern,
    })

  const badge = { id: 'badge', pattern: 'B', score: 0.5 }
  const onBadge = [{ custom: 'badge', action: 'block' }]

  it.each<[body: Record<string, unknown>, path: string, reason: RegExp]>([
    [{ rules: [{ detector: 'crad', action: 'block' }] }, 'rules.0', /no detector crad/],
    [{ rules: [{ category: 'crypto', action: 'block' }] }, 'rules.0', /no detector of crypto/],
    [{ rules: onBadge }, 'rules.0', /no pattern or dictionary badge/],
    [{ rules: [{ category: 'custom', action: 'block' }] }, 'rules.0', /no pattern and no dictionary/],
    [{ patterns: [badge] }, 'patterns.0.id', /used by no rule/],
    [{ patterns: [badge, badge], rules: onBadge }, 'patterns.1.id', /taken/],
    [
      { patterns: [badge], dictionaries: [{ id: 'badge', terms: ['x'] }], rules: onBadge },
      'dictionaries.0.id',
      /taken/,
    ],
    [
      { patterns: [{ ...badge, id: 'card' }], rules: [{ custom: 'card', action: 'block' }] },
      'patterns.0.id',
      /taken/,
    ],
    [
      { patterns: [{ ...badge, pattern: '(?=x)' }], rules: onBadge },
      'patterns.0.pattern',
      /^looks ahead, which cannot/,
    ],
    [
      { patterns: [badge], rules: [{ custom: 'badge', minimum_score: 0.6, action: 'block' }] },
      'rules.0',
      /above every score/,
    ],
    [{ uninspectable: { tool_result: 'block' } }, 'uninspectable.tool_result', /not among/],
  ])('%j', (body, path, reason) => {
    expect(issues(body)).toEqual([{ path, reason: expect.stringMatching(reason) }])
  })

  it('nothing, where everything is known and used', () => {
    const rules = [
      { category: 'financial', action: 'mask' },
      { detector: 'email', action: 'allow' },
      ...onBadge,
    ]
    expect(issues({ patterns: [badge], rules, uninspectable: { request: 'block' } })).toEqual([])
  })
})
