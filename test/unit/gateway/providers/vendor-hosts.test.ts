import { expect, it } from 'vitest'
import { PROVIDER_KINDS, type ProviderKind } from '../../../../src/gateway/providers/provider.ts'

// Hosts below the domains of vendors that anyone can rent must not be sent a credential.

const OWN: Array<[ProviderKind, string]> = [
  ['bedrock', 'bedrock-runtime.us-east-1.amazonaws.com'],
  ['bedrock', 'bedrock-runtime-fips.us-gov-west-1.amazonaws.com'],
  ['bedrock', 'bedrock-mantle.eu-west-1.api.aws'],
  ['bedrock', 'vpce-1a2b.bedrock-runtime.us-east-1.vpce.amazonaws.com'],
  ['bedrock', 'bedrock-runtime.cn-north-1.amazonaws.com.cn'],
  ['vertex', 'aiplatform.googleapis.com'],
  ['vertex', 'us-east5-aiplatform.googleapis.com'],
  ['vertex', 'aiplatform.eu.rep.googleapis.com'],
  ['gemini', 'generativelanguage.googleapis.com'],
  ['azure-openai', 'my-resource.openai.azure.com'],
  ['foundry', 'my-resource.services.ai.azure.com'],
]
const OTHERS: Array<[ProviderKind, string]> = [
  ['bedrock', 'evil.execute-api.us-east-1.amazonaws.com'],
  ['bedrock', 'bucket.s3.amazonaws.com'],
  ['bedrock', 'bedrock-runtime.evil.us-east-1.amazonaws.com'],
  ['bedrock', 'bedrock-runtime.us-east-1.amazonaws.com.evil.example'],
  ['vertex', 'storage.googleapis.com'],
  ['vertex', 'evil.aiplatform.googleapis.com'],
  ['gemini', 'storage.googleapis.com'],
  ['azure-openai', 'evil.azure-api.net'],
  ['foundry', 'evil.services.ai.azure.com.example'],
]

it.each(OWN)('%s has the host %s', (kind, host) => {
  expect(PROVIDER_KINDS[kind].hosts?.test(host)).toBe(true)
})
it.each(OTHERS)('%s does not have the host %s', (kind, host) => {
  expect(PROVIDER_KINDS[kind].hosts?.test(host)).toBe(false)
})
