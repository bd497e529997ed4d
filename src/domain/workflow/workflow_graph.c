#include "domain/workflow/workflow_graph.h"

#include <stdbool.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "domain/workflow/workflow_node.h"

#define MAIN "main"

/* --- one form -------------------------------------------------------------------------------- */

static void workflow_graph_copy(json_t *to, json_t *from, const char *key)
{
    json_t *value = json_object_get(from, key);

    if (value)
        (void) json_object_set(to, key, value);
}

static json_t *workflow_graph_drawn_node(json_t *node)
{
    json_t *data = json_object_get(node, "data"), *copy = json_object();
    json_t *parameters = json_copy(data);

    workflow_graph_copy(copy, node, "id");
    if (json_object_get(data, "label"))
        (void) json_object_set(copy, "name", json_object_get(data, "label"));
    if (json_object_get(data, "nodeType"))
        (void) json_object_set(copy, "type", json_object_get(data, "nodeType"));
    (void) json_object_del(parameters, "label");
    (void) json_object_del(parameters, "nodeType");
    if (json_is_object(json_object_get(parameters, "params")))
        (void) json_object_set(copy, "parameters", json_object_get(parameters, "params"));
    else
        (void) json_object_set(copy, "parameters", parameters);
    json_decref(parameters);
    return copy;
}

static json_t *workflow_graph_node(json_t *node)
{
    static const char *const keys[] = {"id",       "name",       "type",         "parameters",
                                       "disabled", "maxRetries", "retryDelayMs", "timeoutMs"};
    json_t *copy;

    if (json_is_object(json_object_get(node, "data")))
        return workflow_graph_drawn_node(node);
    copy = json_object();
    for (size_t i = 0; i < ARRAY_COUNT(keys); i++)
        workflow_graph_copy(copy, node, keys[i]);
    if (!json_object_get(copy, "parameters"))
        (void) json_object_set_new(copy, "parameters", json_object());
    return copy;
}

static void workflow_graph_add_edge(json_t *edges, const char *from, const char *to,
                                    const char *type)
{
    if (from && to && json_array_size(edges) <= WORKFLOW_EDGES_MAX)
        (void) json_array_append_new(edges, json_pack("{s:s, s:s, s:s}", "from", from, "to", to,
                                                      "type", type && *type ? type : MAIN));
}

static void workflow_graph_add_group(json_t *edges, const char *from, json_t *group)
{
    json_t *target;
    size_t i;

    json_array_foreach (group, i, target) {
        workflow_graph_add_edge(edges, from, json_string_value(json_object_get(target, "node")),
                                json_string_value(json_object_get(target, "type")));
    }
}

static void workflow_graph_add_connections(json_t *edges, json_t *connections)
{
    const char *from;
    json_t *source;

    json_object_foreach (connections, from, source) {
        json_t *groups = json_object_get(source, MAIN);

        for (size_t i = 0; i < json_array_size(groups); i++)
            workflow_graph_add_group(edges, from, json_array_get(groups, i));
    }
}

json_t *workflow_graph_normal(json_t *workflow)
{
    json_t *nodes = json_array(), *edges = json_array(), *node, *edge;
    size_t i;

    json_array_foreach (json_object_get(workflow, "nodes"), i, node) {
        if (i <= WORKFLOW_NODES_MAX)
            (void) json_array_append_new(nodes, workflow_graph_node(node));
    }
    json_array_foreach (json_object_get(workflow, "edges"), i, edge) {
        workflow_graph_add_edge(edges, json_string_value(json_object_get(edge, "source")),
                                json_string_value(json_object_get(edge, "target")),
                                json_string_value(json_object_get(edge, "sourceHandle")));
    }
    if (!json_is_array(json_object_get(workflow, "edges")))
        workflow_graph_add_connections(edges, json_object_get(workflow, "connections"));
    return json_pack("{s:o, s:o}", "nodes", nodes, "edges", edges);
}

/* --- what is wrong with it ------------------------------------------------------------------- */

#define COMPLAIN(errors, ...) (void) json_array_append_new((errors), json_sprintf(__VA_ARGS__))

static size_t workflow_graph_index(json_t *nodes, const char *id)
{
    json_t *node;
    size_t i;

    json_array_foreach (nodes, i, node) {
        const char *name = json_string_value(json_object_get(node, "id"));

        if (name && strcmp(name, id) == 0)
            return i;
    }
    return SIZE_MAX;
}

static void workflow_graph_check_node(json_t *nodes, size_t index, json_t *errors)
{
    json_t *node = json_array_get(nodes, index);
    const char *id = json_string_value(json_object_get(node, "id"));
    const char *type = json_string_value(json_object_get(node, "type"));
    const struct workflow_kind *kind = type ? workflow_kind_find(type) : NULL;

    if (!id || !*id)
        COMPLAIN(errors, "Node %zu has no id", index);
    else if (workflow_graph_index(nodes, id) != index)
        COMPLAIN(errors, "Two nodes have the id %s", id);
    else if (!kind)
        COMPLAIN(errors, "Unknown node type: %s (node: %s)", type ? type : "", id);
    else if (kind->missing)
        COMPLAIN(errors, "Node type %s is not available here: %s (node: %s)", type, kind->missing,
                 id);
    if (!json_is_object(json_object_get(node, "parameters")))
        COMPLAIN(errors, "parameters must be an object (node: %s)", id ? id : "");
}

/* Take away what has nothing before it until nothing changes: what is left goes in a circle. */
static bool workflow_graph_has_circle(json_t *nodes, json_t *edges)
{
    size_t count = json_array_size(nodes), left = count, i;
    AUTO(free) bool *is_gone = mem_alloc_array(count + 1, sizeof(*is_gone));
    bool has_changed = true;
    json_t *edge;

    while (has_changed) {
        has_changed = false;
        for (size_t n = 0; n < count; n++) {
            const char *id = json_string_value(json_object_get(json_array_get(nodes, n), "id"));
            bool is_free = !is_gone[n];

            json_array_foreach (edges, i, edge) {
                size_t from =
                    workflow_graph_index(nodes, json_string_value(json_object_get(edge, "from")));

                if (id && strcmp(json_string_value(json_object_get(edge, "to")), id) == 0 &&
                    from != SIZE_MAX && !is_gone[from])
                    is_free = false;
            }
            if (is_free) {
                is_gone[n] = has_changed = true;
                left--;
            }
        }
    }
    return left > 0;
}

void workflow_graph_check(json_t *graph, json_t *errors)
{
    json_t *nodes = json_object_get(graph, "nodes"), *edges = json_object_get(graph, "edges");
    json_t *edge;
    size_t i;

    if (!json_array_size(nodes))
        (void) json_array_append_new(errors, json_string("Workflow has no nodes"));
    if (json_array_size(nodes) > WORKFLOW_NODES_MAX || json_array_size(edges) > WORKFLOW_EDGES_MAX)
        (void) json_array_append_new(
            errors, json_sprintf("A workflow may have at most %d nodes and %d connections",
                                 WORKFLOW_NODES_MAX, WORKFLOW_EDGES_MAX));
    for (i = 0; i < json_array_size(nodes); i++)
        workflow_graph_check_node(nodes, i, errors);
    json_array_foreach (edges, i, edge) {
        const char *from = json_string_value(json_object_get(edge, "from"));
        const char *to = json_string_value(json_object_get(edge, "to"));

        if (workflow_graph_index(nodes, from) == SIZE_MAX ||
            workflow_graph_index(nodes, to) == SIZE_MAX)
            COMPLAIN(errors, "A connection from %s to %s names a node that is not there", from, to);
    }
    if (!json_array_size(errors) && workflow_graph_has_circle(nodes, edges))
        (void) json_array_append_new(errors,
                                     json_string("Workflow contains a cycle: nodes must not lead "
                                                 "back to themselves"));
}
