import * as z from 'zod'

type Override = Parameters<typeof z.toJSONSchema>[1] extends infer Options
  ? NonNullable<Extract<Options, { override?: unknown }>['override']>
  : never

/**
 * The JSON schema of a tool's input or output. The bounds of safe integers, which zod gives every `int()`, are left out: models
 * do not need them, and a body with a number of 16 digits takes the slow path of `parseJson` (`gateway/protocols/json`).
 * @param override changes each schema further.
 */
export function toolSchema(
  schema: z.ZodType,
  io: 'input' | 'output',
  override: Override = () => undefined,
): Record<string, unknown> {
  const { $schema: _, ...members } = z.toJSONSchema(schema, {
    io,
    override: (context) => {
      const { jsonSchema } = context
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
      override(context)
    },
  })
  return members
}
