import type { Json } from '../../../../../src/gateway/protocols/json.ts'
import { becomes, type Group, refused } from './features.ts'

const SCHEMA = {
  type: 'object',
  properties: { answer: { type: 'string' } },
  required: ['answer'],
  additionalProperties: false,
}
const FREE = { type: 'object', additionalProperties: { type: 'string' } }
const wanted = (schema: Json) => ({
  type: 'json_schema',
  json_schema: { name: 'answer', strict: true, schema },
})
const FORMAT = { chat: ['response_format'], messages: ['output_config'] }
const RAW = 'Write it as raw JSON: no code fence, no explanation and nothing else before or after it.'
const FITS = `Answer with exactly one JSON value that fits the JSON schema below. ${RAW}\n\n${JSON.stringify(SCHEMA)}`

export const formatFeatures: Group = {
  title: 'JSON answers',
  features: [
    {
      name: '`json_object`',
      said: { chat: { response_format: { type: 'json_object' } } },
      places: { chat: ['response_format'], messages: ['system'] },
      expected: {
        'chat:messages': becomes({
          system: [{ type: 'text', text: `Answer with exactly one JSON object. ${RAW}` }],
        }),
      },
      note: 'an instruction; a code fence around the answer is removed',
    },
    {
      name: '`json_object` beside tools',
      said: {
        chat: {
          response_format: { type: 'json_object' },
          tools: [{ type: 'function', function: { name: 'look', parameters: { type: 'object' } } }],
        },
      },
      places: { chat: ['response_format'], messages: ['system', 'output_config'] },
      expected: { 'chat:messages': 'dropped' },
      note: 'the answer may be prose (interface); use a schema',
    },
    {
      name: '`json_object`, model without it',
      capabilities: ['vision'],
      said: { chat: { response_format: { type: 'json_object' } } },
      places: { chat: ['response_format'], messages: ['system'] },
      expected: {
        'chat:chat': 'dropped',
        'chat:messages': becomes({
          system: [{ type: 'text', text: `Answer with exactly one JSON object. ${RAW}` }],
        }),
      },
      note: 'accepted and without effect between equal protocols (interface)',
    },
    {
      name: 'JSON of a schema',
      said: {
        chat: { response_format: wanted(SCHEMA) },
        messages: { output_config: { format: { type: 'json_schema', schema: SCHEMA } } },
      },
      places: FORMAT,
      expected: {
        'chat:messages': becomes({ output_config: { format: { type: 'json_schema', schema: SCHEMA } } }),
        'messages:chat': becomes({ response_format: wanted(SCHEMA) }),
      },
    },
    {
      name: 'JSON of a schema, model that has only `json_object`',
      capabilities: ['json_object'],
      said: { messages: { output_config: { format: { type: 'json_schema', schema: SCHEMA } } } },
      places: { chat: ['response_format', 'messages.0'], messages: ['output_config'] },
      expected: {
        'messages:chat': becomes({
          response_format: { type: 'json_object' },
          'messages.0': { role: 'system', content: FITS },
        }),
      },
      note: 'the schema as an instruction; without the mode unless the schema is of an object',
    },
    {
      name: 'JSON of a schema, model without any JSON mode',
      capabilities: [],
      said: {
        chat: { response_format: wanted(SCHEMA) },
        messages: { output_config: { format: { type: 'json_schema', schema: SCHEMA } } },
      },
      places: { chat: ['response_format', 'messages.0'], messages: ['output_config', 'system'] },
      expected: {
        'chat:messages': becomes({ system: [{ type: 'text', text: FITS }] }),
        'messages:chat': becomes({ 'messages.0': { role: 'system', content: FITS } }),
      },
      note: 'the schema as an instruction; a code fence around the answer is removed',
    },
    {
      name: 'Schema with members of any name',
      said: {
        chat: { response_format: wanted(FREE) },
        messages: { output_config: { format: { type: 'json_schema', schema: FREE } } },
      },
      places: FORMAT,
      expected: {
        'chat:messages': refused('members of any name'),
        'messages:chat': becomes({
          response_format: {
            type: 'json_schema',
            json_schema: { name: 'answer', strict: false, schema: FREE },
          },
        }),
      },
      note: 'models of messages cannot enforce it',
    },
    {
      name: 'Limits of values in a schema (`minimum`, `pattern`)',
      said: {
        chat: {
          response_format: wanted({ ...SCHEMA, properties: { answer: { type: 'string', maxLength: 9 } } }),
        },
      },
      places: { chat: ['response_format'], messages: ['output_config.format.schema.properties.answer'] },
      expected: {
        'chat:messages': becomes({
          'output_config.format.schema.properties.answer': { type: 'string', description: '(maxLength: 9)' },
        }),
      },
      note: 'added to the description, where the provider cannot enforce them',
    },
    {
      name: 'Formats of other servers (`response_format` of another type)',
      said: { chat: { response_format: { type: 'grammar', grammar: 'root ::= "yes" | "no"' } } },
      places: { chat: ['response_format'], messages: ['output_config', 'system'] },
      expected: { 'chat:messages': 'dropped' },
    },
  ],
}
