import { useMutation, useQueries, useQuery, useQueryClient } from '@tanstack/react-query'
import type { AnswerOf } from '../../../client/management-client.ts'
import { call } from '../../data/client.ts'
import { type Me, may } from '../../data/me.ts'
import { Button } from '../../design/button.tsx'
import { Failure, Waiting } from '../../design/notice.tsx'
import { Section } from '../../design/section.tsx'
import { State } from '../../design/state.tsx'
import { Table } from '../../design/table.tsx'
import { TEXT } from './text.ts'

type CatalogueModel = AnswerOf<'models.show'>
type Route = CatalogueModel['routes'][number]

/** The routes of a model, best first, and the health of their providers: for operators, who order them. */
export function ModelRoutes({ me, modelId }: { me: Me; modelId: string }) {
  const queries = useQueryClient()
  const queryKey = ['catalogue-model', modelId]
  const model = useQuery({ queryKey, queryFn: () => call('models.show', { path: { modelId } }) })
  const order = useMutation({
    mutationFn: ({ routes, ...shown }: CatalogueModel) =>
      call('models.replace', {
        path: { modelId },
        body: {
          ...{ owned_by: shown.owned_by, context_window: shown.context_window },
          ...{ max_output_tokens: shown.max_output_tokens, prices: shown.prices },
          ...{ capabilities: shown.capabilities, disabled: shown.disabled_at !== null },
          routes: routes.map(({ provider_id, upstream_model }) => ({ provider_id, upstream_model })),
        },
      }),
    onSuccess: () => queries.invalidateQueries({ queryKey }),
  })
  if (model.error) return <Failure error={model.error} retry={() => model.refetch()} />
  if (!model.data) return <Waiting />
  const shown = model.data
  const move = (index: number) => order.mutate({ ...shown, routes: swapped(shown.routes, index) })
  return (
    <Section title={TEXT.routes} note={TEXT.bestFirst}>
      {order.error && <Failure error={order.error} />}
      <RouteTable
        routes={shown.routes}
        move={may(me, 'installation.catalogue-change') && !order.isPending ? move : null}
      />
    </Section>
  )
}

/** Routes with one of them a place further up. */
const swapped = (routes: readonly Route[], index: number): Route[] =>
  routes.map(
    (route, at) => (at === index - 1 ? routes[index] : at === index ? routes[index - 1] : route) ?? route,
  )

function RouteTable({ routes, move }: { routes: readonly Route[]; move: ((index: number) => void) | null }) {
  const { routeHeads: heads } = TEXT
  const health = useQueries({
    queries: routes.map(({ provider_id: providerId }) => ({
      queryKey: ['provider', providerId],
      queryFn: () => call('providers.show', { path: { providerId } }),
    })),
  })
  return (
    <Table
      caption={TEXT.routes}
      stack="plain"
      heads={[
        { text: heads.provider },
        { text: heads.upstream },
        { text: heads.health, width: 200 },
        { text: heads.order, width: 120 },
      ]}
    >
      {routes.map((route, index) => {
        const state = health[index]?.data?.health
        return (
          <tr key={`${route.provider_id} ${route.upstream_model}`}>
            <td data-place="a2">{route.provider}</td>
            <td data-place="b2">{route.upstream_model}</td>
            <td data-place="a3">
              {state && (
                <State look={state === 'refuses_gateway' ? 'failed' : 'quiet'}>{TEXT.health[state]}</State>
              )}
            </td>
            <td data-place="c">
              {move !== null && index > 0 && (
                <Button look="plain" onClick={() => move(index)} aria-label={TEXT.earlier(route.provider)}>
                  {TEXT.up}
                </Button>
              )}
            </td>
          </tr>
        )
      })}
    </Table>
  )
}
