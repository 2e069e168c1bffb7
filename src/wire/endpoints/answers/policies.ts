import * as z from 'zod'
import { ACTIONS, CATEGORIES, DIRECTIONS, policyBody } from '../../dlp.ts'
import { uuid } from '../../management-fields.ts'
import { toolSettings } from '../../tool-settings.ts'
import { count, deleted, list, time } from './parts.ts'

/** Schemas of the endpoints for policies of data-loss prevention, and for the rules of hosted tools. */

const policyHead = { name: z.string(), enabled: z.boolean(), version: count }

const policy = policyBody
  .extend({
    id: uuid,
    ...policyHead,
    /** Names in the scope that no longer exist. */
    stale_scope: z.array(z.string()),
    created_at: time,
    updated_at: time,
  })
  .meta({ id: 'Policy' })

const policyVersion = z
  .strictObject({ ...policyHead, author: z.string(), created_at: time })
  .meta({ id: 'PolicyVersion' })

const detector = z
  .strictObject({
    id: z.string(),
    category: z.enum(CATEGORIES),
    description: z.string(),
    minimum_score: z.number(),
  })
  .meta({ id: 'Detector' })

const span = z.strictObject({
  start: count,
  end: count,
  detector: z.string(),
  category: z.enum(CATEGORIES),
  score: z.number(),
  action: z.enum(ACTIONS),
})

const trialResult = z
  .strictObject({
    direction: z.enum(DIRECTIONS),
    spans: z.array(span),
    blocked: z.boolean(),
    text: z.string().nullable(),
    /** The most that a stream of the text holds back at once, in UTF-16 units, and where; null where it was not tried as a stream. */
    held_back: z.strictObject({ most: count, at: count }).nullable(),
  })
  .meta({ id: 'PolicyTrial' })

const dryRunResult = z
  .strictObject({
    direction: z.enum(DIRECTIONS),
    samples: count,
    with_findings: count,
    blocked: count,
    findings: z.array(
      z.strictObject({ detector: z.string(), category: z.enum(CATEGORIES), action: z.enum(ACTIONS), count }),
    ),
  })
  .meta({ id: 'PolicyDryRun' })

export const policyAnswers = {
  'detectors.list': list(detector),
  'policies.list': list(policy),
  'policies.create': policy,
  'policies.show': policy,
  'policies.change': policy,
  'policies.remove': deleted,
  'policies.versions': list(policyVersion),
  'policies.version': policyBody.extend(policyVersion.shape),
  'policies.test': trialResult,
  'policies.dry-run': dryRunResult,
  'tools.show': toolSettings,
  'tools.replace': toolSettings,
}
