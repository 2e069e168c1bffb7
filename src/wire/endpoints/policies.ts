import * as z from 'zod'
import {
  ACTIONS,
  CATEGORIES,
  DIRECTIONS,
  policyBody,
  policyCreation,
  policyDryRun,
  policyTrial,
  policyUpdate,
} from '../dlp.ts'
import { pageQuery, uuid } from '../management-fields.ts'
import { toolSettings } from '../tool-settings.ts'
import { type Contract, count, deleted, list, time } from './contract.ts'

/** Schemas of the endpoints for policies of data-loss prevention, and for the rules of hosted tools. */

const policyHead = { name: z.string(), enabled: z.boolean(), version: count }

const policy = policyBody.extend({
  id: uuid,
  ...policyHead,
  /** Names in the scope that no longer exist. */
  stale_scope: z.array(z.string()),
  created_at: time,
  updated_at: time,
})

const policyVersion = z.strictObject({ ...policyHead, author: z.string(), created_at: time })

const detector = z.strictObject({
  id: z.string(),
  category: z.enum(CATEGORIES),
  description: z.string(),
  minimum_score: z.number(),
})

const span = z.strictObject({
  start: count,
  end: count,
  detector: z.string(),
  category: z.enum(CATEGORIES),
  score: z.number(),
  action: z.enum(ACTIONS),
})

const trialResult = z.strictObject({
  direction: z.enum(DIRECTIONS),
  spans: z.array(span),
  blocked: z.boolean(),
  text: z.string().nullable(),
})

const dryRunResult = z.strictObject({
  direction: z.enum(DIRECTIONS),
  samples: count,
  with_findings: count,
  blocked: count,
  findings: z.array(
    z.strictObject({ detector: z.string(), category: z.enum(CATEGORIES), action: z.enum(ACTIONS), count }),
  ),
})

export const policyContracts = {
  'detectors.list': { answer: list(detector) },
  'policies.list': { query: pageQuery, answer: list(policy) },
  'policies.create': { body: policyCreation, answer: policy, status: 201, errors: ['unprocessable'] },
  'policies.show': { answer: policy },
  'policies.change': { body: policyUpdate, answer: policy, errors: ['unprocessable'] },
  'policies.remove': { answer: deleted },
  'policies.versions': { query: pageQuery, answer: list(policyVersion) },
  'policies.version': { answer: policyBody.extend(policyVersion.shape) },
  'policies.test': { body: policyTrial, answer: trialResult, noStore: true },
  'policies.dry-run': { body: policyDryRun, answer: dryRunResult },
  'tools.show': { answer: toolSettings },
  'tools.replace': { body: toolSettings, answer: toolSettings },
} satisfies Record<string, Contract>
